"""How much of a replay a trace shows: all of it, or one of two blind spots of real tools, for practice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from typing import Literal

from sample_engine.profile import Activity

GraphTrace = Literal["node", "graph", "none"]
"""Every kernel (as Kineto); one row a replay (as nsys by default); nothing but the launch (as seen with torch
2.11 on CUDA 13 and on some ROCm stacks).
"""


def shown(activities: list[Activity], graph_trace: GraphTrace) -> Iterator[Activity]:
    """The activities that a trace of this kind lists."""
    if graph_trace == "node":
        yield from activities
        return
    yield from (one for one in activities if not one.graph_id)
    if graph_trace == "graph":
        replayed = sorted((one for one in activities if one.graph_id), key=_launch)
        yield from (_whole(list(nodes)) for _, nodes in groupby(replayed, key=_launch))


def _launch(activity: Activity) -> int:
    return activity.correlation


def _whole(nodes: list[Activity]) -> Activity:
    """A replay as one row, from the start of its first kernel to the end of its last."""
    name = f"graph {nodes[0].graph_id} ({len(nodes)} nodes)"
    return replace(nodes[0], name=name, node=0, end_ns=nodes[-1].end_ns)
