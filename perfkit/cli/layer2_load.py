"""The load that `perfkit layer2 --load` sends: the sweep's endpoints and data sets, at one concurrency."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from layers.collectors.load.endpoints.registry import endpoint_for
from layers.collectors.load.plan import EndpointChoice, Extent, Load, LoadPlan
from layers.collectors.server_adapters.generic import GenericAdapter
from layers.layer2_stacks.own_load import LONGEST_S, OwnLoad
from layers.layer3_sweep.data_sets.registry import data_set
from layers.layer3_sweep.sweep_folder import keep_items
from layers.layer3_sweep.target import target_for
from perfkit.cli.usual_load import pipeline_of, usual_data, usual_endpoint

PART = "layer2"
WARMUP_S = 2.0
"""As `perfkit sweep`; and as many requests as are in flight."""
DRAIN_S = 5.0
"""What is in flight when the recording has ended is of no interest."""


@dataclass(frozen=True, slots=True)
class LoadWanted:
    """What is to be kept in flight; None: what is usual for the server."""

    concurrency: int
    endpoint: str | None = None
    model: str | None = None
    data: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


def own_load(
    url: str,
    wanted: LoadWanted,
    folder: Path,
    adapter: GenericAdapter | None,
    *,
    told: Callable[[], bool],
    roots: Sequence[str] = (),
) -> OwnLoad:
    """The load, not yet begun; UsageError for an endpoint or a data set that there is not."""
    info = adapter.info() if adapter is not None else None
    pipeline = pipeline_of(adapter, info)
    named = usual_endpoint(pipeline, wanted.endpoint)
    model = info.models[0] if info is not None and info.models else ""
    chosen = EndpointChoice(named, wanted.model or model)
    items = data_set(wanted.data or usual_data(pipeline, named), folder / "sound")
    endpoint_for(chosen).check(items.warmup(PART))
    plan = LoadPlan(
        folder=folder / "load",
        target=target_for(url, wanted.headers),
        endpoint=chosen,
        items=keep_items(folder, items.measured(PART)),
        warmup_items=keep_items(folder, items.warmup(PART)),
        load=Load(concurrency=wanted.concurrency),
        extent=Extent(
            duration_s=LONGEST_S,
            warmup_s=WARMUP_S,
            warmup_requests=wanted.concurrency,
            drain_s=DRAIN_S,
        ),
        nonce=items.nonce(PART),
    )
    return OwnLoad(plan, told, roots)
