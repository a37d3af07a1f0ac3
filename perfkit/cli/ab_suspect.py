"""`perfkit ab --suspect`: samples the stacks of a server of each arm, beside the runs that are timed.

    for each arm, after the last run
        a fresh server with its settings, under the load of the experiment
        captures with --idle             stacks-<arm>/

Or reads captures that exist (`--stacks-a`, `--stacks-b`). An arm that cannot be sampled is told, and the A/B
stands without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from parsers.errors import PerfkitError, UsageError
from perfkit.cli.ending import told_to_end
from perfkit.cli.messages import say

if TYPE_CHECKING:
    from layers.layer2_stacks.collect_live import Live
    from layers.layer2_stacks.model import Capture
    from layers.layer4_ab.experiment import ArmPlan
    from layers.layer4_ab.model import LeafEvidence
    from perfkit.cli.ab_run import Ended

SECONDS = 10
"""Of each capture: three of them hold 600 ticks at 20 Hz, three times what a share needs."""


def suspect_evidence(
    places: Sequence[str],
    stacks_a: Sequence[str],
    stacks_b: Sequence[str],
    ended: Ended | None,
    headers: Mapping[str, str],
) -> LeafEvidence | None:
    """The share of each place in both arms; None where none was named. UsageError without captures to read or
    an experiment to sample beside."""
    if not places:
        if stacks_a or stacks_b:
            raise UsageError(
                "--stacks-a, --stacks-b: name the place whose share they are for (--suspect PLACE)"
            )
        return None
    from layers.layer4_ab.leaf_share import leaf_evidence

    if stacks_a and stacks_b:
        return _of_files(places, stacks_a, stacks_b)
    if ended is None:
        raise UsageError(
            "--suspect: give captures of stacks of both arms (--stacks-a FILE... --stacks-b FILE...)"
        )
    problems = list[str]()
    arms = (("a", ended.experiment.a), ("b", ended.experiment.b))
    before, after = (_captures(name, arm, ended, headers, problems) for name, arm in arms)
    return leaf_evidence(before, after, places, problems)


def _of_files(places: Sequence[str], stacks_a: Sequence[str], stacks_b: Sequence[str]) -> LeafEvidence:
    from layers.layer4_ab.leaf_share import leaf_evidence
    from perfkit.cli.layer2_files import read_captures

    read = read_captures((stacks_a, stacks_b), (), ())
    before, after = read.sets
    found = leaf_evidence(before, after, places)
    return found if not read.lost else _with(found, read.lost)


def _with(found: LeafEvidence, lost: Sequence[str]) -> LeafEvidence:
    from dataclasses import replace

    return replace(found, problems=(*found.problems, *lost))


def _captures(
    name: str, arm: ArmPlan, ended: Ended, headers: Mapping[str, str], problems: list[str]
) -> Sequence[Capture]:
    """The captures of one arm; why there are none is a problem in words."""
    try:
        live = _record(name, arm, ended, headers)
    except PerfkitError as error:
        problems.append(f"{name.upper()}: {error}")
        return ()
    against = [f"{name.upper()}: {one}" for one in (*live.facts.obstacles, *live.unread)]
    problems += against
    return live.captures


def _record(name: str, arm: ArmPlan, ended: Ended, headers: Mapping[str, str]) -> Live:
    from layers.collectors.stacks.rates import REPEATS
    from layers.collectors.stacks.session import Follow
    from layers.layer3_sweep.subject import serving
    from perfkit.cli.layer2_live import adapter_of
    from perfkit.cli.layer2_load import LoadWanted
    from perfkit.cli.stack_recording import loaded_service, record_whole_time

    folder = ended.folder / f"stacks-{name}"
    folder.mkdir(exist_ok=True)
    each = ended.experiment.each
    wanted = LoadWanted(
        concurrency=int(each.loads[0].concurrency or 1),
        endpoint=each.endpoint.name,
        model=each.endpoint.model or None,
        data=each.data,
        headers=headers,
    )
    say(f"stacks of {name.upper()}: starting {arm.subject}")
    with told_to_end() as told, serving(arm.subject, arm.settings, folder / "server.log") as served:
        adapter = adapter_of(served.url, dict(headers))
        service = loaded_service(served, adapter, wanted, folder, told.is_set)
        return record_whole_time(service, folder, SECONDS, REPEATS, Follow(told.is_set, say))
