"""The deadlines of waits for a guest, and the clock that measures them."""

from __future__ import annotations

import time
from collections.abc import Callable

from msgspec import Struct


class Timing(Struct, frozen=True):
    """Deadlines in seconds. `boot` and `fence` are multiplied by the guest's timeout factor (`patience`), the others are not."""

    boot: float = 60.0
    """Deadline for reaching the agent."""
    fence: float = 10.0
    """Deadline for the console to show the end of a command that the channel has answered."""
    poll: float = 0.5
    """Interval at which a wait checks the deadline and whether the kernel has panicked."""
    last_words: float = 3.0
    """The console is read for so long after a panic, or after a request for backtraces."""
    settle: float = 1.0
    """When a case is over, the rest of a report that is still being printed is awaited for so long."""
    clock: Callable[[], float] = time.monotonic
    """Deadlines are measured with this clock; a test moves it, so that no test depends on the speed of a machine."""


TIMING = Timing()
