"""What measurements of a server that runs share: the load beside them (`--load N`), and where it writes."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from parsers.errors import UsageError

if TYPE_CHECKING:
    from layers.collectors.server_adapters.generic import GenericAdapter
    from layers.layer3_sweep.driven import DrivenLoad


@dataclass(frozen=True, slots=True)
class Driving:
    """The load that was asked for: N at a time, and what it sends, as `perfkit sweep` understands it."""

    concurrency: int | None
    endpoint: str | None
    model: str | None
    data: str | None
    fields: Mapping[str, object]

    def refuse_alone(self) -> None:
        """UsageError where words about a load stand without one."""
        given = {
            "--endpoint": self.endpoint,
            "--model": self.model,
            "--data": self.data,
            "--field": self.fields,
        }
        if self.concurrency is None and (named := [name for name, value in given.items() if value]):
            raise UsageError(f"{', '.join(named)}: say how much load with --load N")
        if self.concurrency is not None and self.concurrency < 1:
            raise UsageError(f"--load {self.concurrency}: give 1 or more")


def driven_load(
    adapter: GenericAdapter, url: str, driving: Driving, headers: Mapping[str, str], folder: Path
) -> DrivenLoad | None:
    """The load, if one is to be driven; of the bundled engine's server what its pipeline takes."""
    from layers.collectors.load.plan import EndpointChoice
    from layers.layer3_sweep.driven import DrivenLoad
    from perfkit.cli.usual_load import pipeline_of, usual_data, usual_endpoint

    if driving.concurrency is None:
        return None
    info = adapter.info()
    pipeline = pipeline_of(adapter, info)
    endpoint = usual_endpoint(pipeline, driving.endpoint)
    data = driving.data or usual_data(pipeline, endpoint)
    model = driving.model or (info.models[0] if info.models else "")
    choice = EndpointChoice(endpoint, model, options=dict(driving.fields))
    return DrivenLoad(folder / "load", url, headers, choice, data, driving.concurrency)


def servers_folder(stack: ExitStack, investigation: Path, prefix: str, *, keep: bool) -> Path:
    """A new folder of the investigation, or one for as long as the stack lasts; absolute, since it is the
    server that writes there."""
    from layers.evidence.store import ARTIFACTS, Investigation
    from layers.layer3_sweep.sweep_folder import new_folder

    if not keep:
        return Path(stack.enter_context(tempfile.TemporaryDirectory())).resolve()
    with Investigation.open(investigation):
        return new_folder(investigation / ARTIFACTS, prefix).resolve()
