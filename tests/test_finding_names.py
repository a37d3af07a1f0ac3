"""Kernels in sentences and in the Nsight Compute command: names that can be read and pasted."""

from __future__ import annotations

import shlex

from layers.evidence.intervals import total
from layers.layer1_gpu_busy.busy import busy_time, measure_busy
from layers.layer1_gpu_busy.findings import ncu_command, top_kernel_advice
from layers.layer1_gpu_busy.kernels import kernel_table
from layers.layer1_gpu_busy.model import DeviceAnalysis
from layers.layer1_gpu_busy.next_steps import DEVICE_BOUND
from layers.layer1_gpu_busy.replays import check_replays
from tests.builders import Op, copy_to_host, kernel, ops_of, trace_of


def device(*ops: Op) -> DeviceAnalysis:
    """A device of which only the kernel table matters."""
    trace = trace_of(ops)
    mine = ops_of(trace)
    rows = kernel_table(trace, mine, total(busy_time(mine)))
    return DeviceAnalysis(measure_busy(trace, mine), check_replays(trace, mine), kernels=rows)


def test_the_command_names_the_three_kernels_that_take_the_most_time() -> None:
    ops = [kernel(100 * n, 100 * n + 10 * n, name) for n, name in enumerate("abcd", start=1)]
    assert ncu_command(device(*ops)) == (
        "ncu --set full --kernel-name 'regex:(^|::)(d|c|b)$' --launch-skip 100 --launch-count 3 "
        "-- YOUR COMMAND"
    )


def test_copies_are_no_kernels_and_overloads_are_one_name() -> None:
    ops = [
        copy_to_host(0, 500),
        kernel(600, 700, "void ns::f<int>(int)"),
        kernel(700, 760, "void ns::f<long>(long)"),
    ]
    command = ncu_command(device(*ops))
    assert command is not None and "'regex:(^|::)(f)$'" in command


def test_a_name_that_a_shell_or_a_pattern_would_obey_is_left_out() -> None:
    names = ["", "k'; rm -rf ~; '", "a|b", "$(x)", ".*", "naïve kernel", "good_kernel_2"]
    command = ncu_command(device(*(kernel(100 * n, 100 * n + 50, name) for n, name in enumerate(names))))
    assert command is not None
    assert shlex.split(command)[4] == "regex:(^|::)(good_kernel_2)$"


def test_communication_is_never_profiled_since_a_collective_cannot_be_run_again() -> None:
    reduce = "ncclDevKernel_AllReduce_Sum_f16(ncclDevKernelArgsStorage<4096ul>)"
    found = device(kernel(0, 900, reduce), kernel(900, 950, "void ns::gemm<int>(int)"))
    command = ncu_command(found)
    assert command is not None and "'regex:(^|::)(gemm)$'" in command
    assert ncu_command(device(kernel(0, 900, reduce))) is None
    advice = top_kernel_advice(found)
    assert advice.startswith("communication before kernels") and "ncu" not in advice


def test_a_device_that_ran_copies_alone_has_no_command() -> None:
    assert ncu_command(device(copy_to_host(0, 10))) is None


def test_without_a_kernel_table_the_advice_names_no_kernel() -> None:
    bare = device(kernel(0, 10))
    assert top_kernel_advice(DeviceAnalysis(bare.busy, bare.replays)) == DEVICE_BOUND
    assert top_kernel_advice(bare).endswith("the ncu command of kernel (100.0 % of busy time)")
