"""Nothing here depends on how fast the machine is, nor on how the tests were started."""

from __future__ import annotations

import signal

from hypothesis import settings

settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")


def heed_ctrl_c() -> None:
    """For a child: a shell makes what it starts in the background ignore SIGINT, and that is handed down."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
