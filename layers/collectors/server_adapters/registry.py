"""Which kind of server listens at an address."""

from __future__ import annotations

from collections.abc import Mapping

from layers.collectors.server_adapters.bundled import BundledAdapter
from layers.collectors.server_adapters.calls import Caller
from layers.collectors.server_adapters.generic import MODELS, GenericAdapter
from layers.collectors.server_adapters.sglang import SglangAdapter
from layers.collectors.server_adapters.sglang_omni import SglangOmniAdapter
from layers.collectors.server_adapters.vllm import VllmAdapter

KINDS: tuple[type[GenericAdapter], ...] = (
    BundledAdapter,
    SglangOmniAdapter,
    SglangAdapter,
    VllmAdapter,
    GenericAdapter,
)
"""In the order in which they are asked; the last takes whatever answers."""


def adapter_for(
    url: str, headers: Mapping[str, str] | None = None, verify: bool = True, ca_file: str = ""
) -> GenericAdapter:
    """The adapter of the server at this address; ServerCallFailed where nothing answers there.

    `headers` go with every call and are written nowhere; `verify` and `ca_file` are for TLS.
    """
    caller = Caller(url, headers or {}, verify, ca_file)
    caller.get(MODELS)
    adapters = (kind(caller) for kind in KINDS)
    return next(adapter for adapter in adapters if adapter.recognise())
