"""How `perfkit regress` collects: a folder of its own in the investigation, arm after arm."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree

from layers.collectors.load.endpoints.registry import endpoint_for
from layers.collectors.load.item import Item
from layers.evidence.store import ARTIFACTS, Investigation
from layers.evidence.wording import counted
from layers.layer3_sweep.collect import TOLD
from layers.layer3_sweep.data_sets.registry import data_set
from layers.layer3_sweep.sweep_folder import ITEMS, keep_items
from layers.layer3_sweep.target import require_listening
from layers.layer5_regression.collect import collect
from layers.layer5_regression.collected import contents_of_arm, is_collected, read_collected
from layers.layer5_regression.collection_folder import (
    arm_folder,
    latest_folder,
    new_folder,
    read_plan,
    write_plan,
)
from layers.layer5_regression.collection_plan import NAMES, SEED, CollectionPlan
from layers.layer5_regression.model import Arm, Cell, DataFacts
from layers.layer5_regression.separation import contents_of, data_facts, earlier_contents, joined
from parsers.errors import InvalidMeasurement, PerfkitError, UsageError
from perfkit.cli.messages import complain, say

WHAT_DATA = "give others with --data (longer, of another structure, or seed=N)"


@dataclass(frozen=True, slots=True)
class Collected:
    """The arms that were asked, and their items beside those that were sent before. `interrupted`: somebody
    ended it before its last cell."""

    arms: tuple[Arm, ...]
    data: DataFacts
    interrupted: bool = False


def collect_new(
    plan: CollectionPlan, investigation: Path, headers: Mapping[str, str], told: Callable[[], bool]
) -> Collected:
    """Begin a collection; UsageError where Layers 3 or 4 have sent some of its items."""
    for arm in plan.arms:
        if not arm.subject.starts:
            require_listening(arm.subject.url)
    with Investigation.open(investigation):
        folder = new_folder(investigation / ARTIFACTS)
    items = _items(plan, folder)
    facts = data_facts(contents_of(items), earlier_contents(investigation))
    if facts.reused:
        rmtree(folder)
        used = f"{facts.reused} of {counted(facts.items, 'item')} were sent by sweeps or A/Bs here (PK566)"
        raise UsageError(f"{used}: {WHAT_DATA}")
    write_plan(folder, plan)
    return _collect(plan, folder, items, facts, headers, told)


def collect_rest(investigation: Path, headers: Mapping[str, str], told: Callable[[], bool]) -> Collected:
    """Go on with the collection that began last in this investigation; UsageError where its items are others
    now."""
    folder = latest_folder(investigation / ARTIFACTS)
    plan = read_plan(folder)
    items = _items(plan, folder)
    _require_same(plan, items, folder)
    say(f"going on with {folder}")
    facts = data_facts(contents_of(items), earlier_contents(investigation))
    return _collect(plan, folder, items, facts, headers, told)


def facts_of_data(names: Sequence[str], investigation: Path) -> DataFacts | None:
    """What arms that perfkit collected were asked, beside what was sent before; None of other files."""
    arms = [Path(name) for name in names if is_collected(name)]
    if not arms or not investigation.is_dir():
        return None
    return data_facts(joined([contents_of_arm(arm) for arm in arms]), earlier_contents(investigation))


def _items(plan: CollectionPlan, folder: Path) -> list[Item]:
    """What is asked; UsageError where the items lack what the endpoint sends, or are fewer than a cell asks
    at a time."""
    items = list(data_set(plan.data, folder / "sound", SEED).measured(""))
    endpoint_for(plan.endpoint).check(items)
    most = max(cell.concurrency for cell in plan.cells)
    if len(items) < most:
        raise UsageError(f"{counted(len(items), 'item')} for {most} at a time: give more (items=N of --data)")
    return items


def _require_same(plan: CollectionPlan, items: Sequence[Item], folder: Path) -> None:
    """Each arm is asked the same: a file that was changed meanwhile would make answers differ by itself."""
    before = set((folder / ITEMS).glob("*.log"))
    kept = keep_items(folder, items)
    if before and kept not in before:
        kept.unlink()
        raise UsageError(
            f"--resume: the items of {plan.data} are others than when it began: restore them, or begin anew"
        )


def _collect(
    plan: CollectionPlan,
    folder: Path,
    items: Sequence[Item],
    facts: DataFacts,
    headers: Mapping[str, str],
    told: Callable[[], bool],
) -> Collected:
    """Ask, then read back whatever there is: a server that is gone costs what it was not asked."""
    why = ""
    try:
        if why := collect(plan, folder, items, Lines(), headers, told):
            complain(f"{why}: perfkit regress --resume goes on")
    except PerfkitError as error:
        complain(str(error))
    interrupted = why.endswith(TOLD)
    arms = [arm for arm in plan.arms if is_collected(str(arm_folder(folder, arm)))]
    if len(arms) < 2:
        if interrupted:
            raise KeyboardInterrupt
        raise InvalidMeasurement(f"{folder}: no two arms were asked: nothing can be compared")
    read = tuple(read_collected(NAMES[arm.name], arm_folder(folder, arm)) for arm in arms)
    return Collected(read, facts, interrupted)


class Lines:
    """Follows a collection in words."""

    def arm(self, name: str, what: str, cells: int) -> None:
        say(f"{name}: {what}; {counted(cells, 'cell')}")

    def cell(self, cell: Cell, number: int, total: int, answered: int, asked: int) -> None:
        say(f"{number:>{len(str(total))}}/{total}  {cell.name}: {answered:,} of {asked:,} answered")
