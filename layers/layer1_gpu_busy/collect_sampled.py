"""Read and analyse logs of samplers: paths in, one analysis per file out."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from layers.layer1_gpu_busy.sampled import analyse_samples
from layers.layer1_gpu_busy.sampled_model import SampledAnalysis
from parsers.sampled_file import read_sampled


def collect_samples(
    paths: Sequence[str], utc_offset_ns: int = 0, step: Callable[[], None] = lambda: None
) -> list[SampledAnalysis]:
    """Every log once, in the order of the names; `step` is called after each.

    Raises UnreadableInput for the first that cannot be read: a log is named for what it alone says.
    """
    once = {os.path.realpath(path): path for path in reversed(paths)}
    files = []
    for path in reversed(once.values()):
        files.append(analyse_samples(read_sampled(path), utc_offset_ns))
        step()
    return files
