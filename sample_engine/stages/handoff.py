"""A result on its way to a stage on another stream.

Small ones stay on the device: the receiver's stream waits for an event and reads the buffer. Large ones move
to pinned host memory, so that a long queue between two stages fills the host and not the device.
"""

from __future__ import annotations

from dataclasses import dataclass

from sample_engine.device import Buffer, Device, Event, Pinned, Stream


@dataclass(frozen=True, slots=True)
class Handoff:
    """Exactly one of `buffer` and `host` is there; it is filled once `ready` has passed."""

    ready: Event
    buffer: Buffer | None
    host: Pinned | None

    @property
    def on_device(self) -> bool:
        return self.buffer is not None


def hand_off(device: Device, stream: Stream, buffer: Buffer, size_bytes: int, limit_bytes: int) -> Handoff:
    """Give away a buffer that `stream` has been told to fill; the caller does not write it again."""
    if size_bytes <= limit_bytes:
        return Handoff(stream.record_event(), buffer, None)
    host = device.pinned(buffer.shape, buffer.dtype)
    stream.copy_out(host, buffer)
    return Handoff(stream.record_event(), None, host)


def receive(stream: Stream, handoff: Handoff, like: Buffer | None = None) -> Buffer:
    """The result as a buffer that `stream` may read, behind its wait. Keep the handoff until an event of this
    stream has passed. `like` is where a result in host memory goes; it must be given for one.
    """
    stream.wait_event(handoff.ready)
    if handoff.buffer is not None:
        return handoff.buffer
    if like is None or handoff.host is None:
        raise ValueError("a result in host memory needs a buffer to go to")
    stream.copy_in(like, handoff.host)
    return like
