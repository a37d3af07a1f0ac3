"""The device's own numbers as metrics. How long it was busy is known of an emulated device alone."""

from __future__ import annotations

from sample_engine.device import Device
from sample_engine.emulated.host.device import EmulatedDevice
from sample_engine.observe.metrics import Metrics

NS = 1e-9


def show_device(device: Device, metrics: Metrics) -> None:
    """Set the gauges to what is so now."""
    memory = device.memory()
    metrics.set("engine_device_reserved_bytes", memory.reserved_bytes)
    metrics.set("engine_device_used_bytes", memory.used_bytes)
    metrics.set("engine_device_budget_bytes", memory.budget_bytes)
    if isinstance(device, EmulatedDevice):
        metrics.set("engine_device_busy_seconds_total", device.counters().busy_ns * NS)
