"""Does a trace hold training? Told by names that PyTorch itself writes, so that it is plain or not said."""

from __future__ import annotations

from parsers.trace_model import DeviceTrace

TRAINING_NAMES = ("autograd::engine::evaluate_function: ", "Optimizer.step#")
"""What torch names the operators of a backward pass (`torch/csrc/autograd/engine.cpp`) and the range around
an optimizer's step (`torch/optim/optimizer.py`)."""

OF_TRAINING = (
    "backward passes or optimizer steps are in this trace, so it is of training; causes and advice here are "
    "written for a service that answers requests"
)


def holds_training(trace: DeviceTrace) -> bool:
    """Whether anything recorded is part of a backward pass or an optimizer's step."""
    return any(name.startswith(TRAINING_NAMES) for name in trace.names)
