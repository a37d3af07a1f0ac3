"""The bell that wakes a device process with nothing to do; while work flows, nobody touches it.

The device looks for commands without pause as long as they keep coming. After a while without any it sets
the word DOZING, looks once more, and then sleeps on the bell, an eventfd, which the host rings when it puts a
command and sees the word. Announcing a command so costs one store and one load, and a system call only after
a pause. Should both sides just miss each other (stores may overtake loads), a doze ends by itself soon.
"""

from __future__ import annotations

import os
import select

LONGEST_DOZE_MS = 20


class Bell:
    """One end of a bell; both processes hold the same file descriptor."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._poll = select.poll()
        self._poll.register(fd, select.POLLIN)

    def ring(self) -> None:
        os.eventfd_write(self.fd, 1)

    def wait(self) -> None:
        """Sleep until it rings, at most LONGEST_DOZE_MS."""
        if self._poll.poll(LONGEST_DOZE_MS):
            os.eventfd_read(self.fd)


def new_bell() -> Bell:
    return Bell(os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK))
