"""Say what is going on: one moving line on a terminal, timestamped lines elsewhere."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.markup import escape
from rich.status import Status

_QUIET_SECONDS = 30.0
"""Without a terminal, how often a step that goes on says so."""


class Progress:
    """A context manager. `say` leaves a line, `step` shows what is being done right now."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = console.is_terminal
        self._status: Status | None = None
        self._last_step = 0.0

    def __enter__(self) -> Progress:
        if self._live:
            self._status = self._console.status("starting")
            self._status.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._status:
            self._status.stop()

    def say(self, text: str) -> None:
        stamp = time.strftime("%H:%M:%S")
        self._console.print(
            f"[dim]{stamp}[/dim] {escape(text)}" if self._live else f"{stamp} {text}", markup=self._live, highlight=False
        )

    def step(self, text: str) -> None:
        if self._status:
            self._status.update(escape(text))
        elif time.monotonic() - self._last_step >= _QUIET_SECONDS:
            self._last_step = time.monotonic()
            self.say(text)
