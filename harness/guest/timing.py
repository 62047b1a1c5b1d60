"""How long the harness waits for a guest, and by which clock."""

from __future__ import annotations

import time
from collections.abc import Callable

from msgspec import Struct


class Timing(Struct, frozen=True):
    """Seconds. `boot` and `fence` are multiplied by the guest's patience, the others are not."""

    boot: float = 60.0
    """Deadline for reaching the agent."""
    fence: float = 10.0
    """Deadline for the console to show the end of a command that the channel has answered."""
    poll: float = 0.5
    """How often a wait looks at the clock and at the state of the kernel."""
    last_words: float = 3.0
    """How long the console of a guest that panicked, or that was asked for its backtraces, is read."""
    settle: float = 1.0
    """How long a report that is still being printed is waited for when its case is over."""
    clock: Callable[[], float] = time.monotonic
    """Deadlines are measured with this clock; a test moves it, so that no test depends on the speed of a machine."""


TIMING = Timing()
