"""What can go wrong with a device.

    DeviceError
    ├── OutOfDeviceMemory    the budget is spent, also after unused memory was given back
    ├── CaptureNotAllowed    the operation needs the host, which a captured graph runs without
    └── DeviceLost           a kernel failed or the device process ended: nothing on the device is usable

Wrong arguments (another device's buffer, too few scalars) are `TypeError` and `ValueError`, raised at once.
A kernel that fails does so later than its launch: the next call that waits for the device raises DeviceLost.
"""

from __future__ import annotations


class DeviceError(RuntimeError):
    """Base of everything that a device raises about itself."""


class OutOfDeviceMemory(DeviceError):
    """An allocation does not fit in the budget."""


class CaptureNotAllowed(DeviceError):
    """The operation cannot be part of a captured graph; the capture is void, the stream stays usable."""


class DeviceLost(DeviceError):
    """The device is gone; open another one."""


def capture_refusal(operation: str) -> CaptureNotAllowed:
    """What every device says of an operation inside a capture that needs the host."""
    return CaptureNotAllowed(
        f"{operation} needs the host, and a captured graph runs without it: "
        "do it before the capture or after the replay"
    )
