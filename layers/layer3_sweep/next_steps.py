"""Where to look after a sweep, by the class of its curve."""

from __future__ import annotations

from layers.layer3_sweep.model import Curve, CurveClass

BY_CLASS = {
    CurveClass.NOT_SATURATED: "raise the load until throughput stops (--max-concurrency, --open-loop)",
    CurveClass.PLATEAU_DEVICE: "kernels: perfkit roofline, and perfkit layer1 --trace of the plateau",
    CurveClass.PLATEAU_LIMIT: "which limit: in which stage requests queue, then an A/B of the limit of "
    "running requests or of the batch with all else equal",
    CurveClass.HOST_SIDE: "the host: waits per second (perfkit nsys run), CPU of each process of the server, "
    "GIL share; then stacks under load",
    CurveClass.RETROGRADE: "what is given back as load grows: preemptions and cache evictions of the server, "
    "then stacks at the peak and at the last load",
    CurveClass.OVERLOADED: "the failures by kind (or what piles up), then the same sweep below that load",
    CurveClass.CLIENT_LIMITED: "more load processes, or a machine of its own for the client; then the same "
    "loads",
    CurveClass.UNDECIDED: "more repeats where they differ, one more doubling of load where it bends, and the "
    "utilisation of the devices beside it (perfkit layer1 --live)",
}
"""What each class leads to."""


def next_step(curve: Curve) -> str:
    """Where the curve leads."""
    return BY_CLASS[curve.word]
