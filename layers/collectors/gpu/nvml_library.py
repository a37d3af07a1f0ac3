"""The driver's library NVML through nvidia-ml-py (`import pynvml`): opened, and its errors told apart.

It is opened only in processes of its own (the sampler, the inventory). A call that hangs then hangs a child,
and NVML is never initialised in a process that might fork one that uses CUDA (vllm issue 32611). Functions
are called by name, since an older driver or binding may lack any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from layers.collectors.gpu.source import EntityLost, SourceUnavailable


class Call(NamedTuple):
    """One call of the library, and the fields that it answers, in the order of what it returns."""

    fields: tuple[str, ...]
    ask: Callable[[], Sequence[float]]


class Nvml:
    """NVML, initialised. `api` is pynvml with its constants."""

    def __init__(self) -> None:
        try:
            self.api: Any = import_module("pynvml")
        except ImportError as error:
            raise SourceUnavailable(f"nvidia-ml-py is not installed ({error})") from error
        try:
            self.api.nvmlInit()
        except self.api.NVMLError as error:
            raise SourceUnavailable(f"{error}{self._advice(error)}") from error

    def __call__(self, function: str, *arguments: Any) -> Any:
        """Call a function of pynvml; raises NVMLError, or AttributeError where the binding lacks it."""
        return getattr(self.api, function)(*arguments)

    def optional(self, function: str, *arguments: Any) -> Any:
        """The answer, or None where this GPU, driver or binding has none."""
        try:
            return self(function, *arguments)
        except (self.api.NVMLError, self.api.NVMLLibraryMismatchError, AttributeError):
            return None

    def why_missing(self, error: Any) -> str:
        """The library's words for a value that it does not give; raises EntityLost where the GPU is gone."""
        if error.value in (self.api.NVML_ERROR_GPU_IS_LOST, self.api.NVML_ERROR_RESET_REQUIRED):
            raise EntityLost(str(error)) from error
        return str(error)

    def _advice(self, error: Any) -> str:
        """What the bare words of some errors leave out."""
        if error.value == self.api.NVML_ERROR_LIB_RM_VERSION_MISMATCH:
            return ": the driver was updated under the running kernel module; reload it, or reboot"
        if error.value == self.api.NVML_ERROR_UNKNOWN:
            return ": in a container this follows a reload of its cgroups; restart the container"
        return ""
