"""Say what is going on: a moving line for each job on a terminal, timestamped lines elsewhere."""

from __future__ import annotations

import threading
import time
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.spinner import Spinner
from rich.table import Table

from harness.logs.lines import clean, clean_text

_QUIET_SECONDS = 30.0
"""Without a terminal, how often a step that goes on says so."""


class Progress:
    """A context manager, used from several threads. `say` leaves a line, `step` shows what a job does right now, `done` that it
    does nothing any more."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._lock = threading.Lock()
        self._steps: dict[str, str] = {}
        self._since: dict[str, float] = {}
        self._last_said = 0.0
        self._live = Live(console=console, transient=True, refresh_per_second=4, get_renderable=self._table)

    def __enter__(self) -> Progress:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def say(self, text: str) -> None:
        stamp, text = time.strftime("%H:%M:%S"), clean_text(text)
        if self._console.is_terminal:
            self._console.print(f"[dim]{stamp}[/dim] {escape(text)}")
        else:
            self._console.print(f"{stamp} {text}", markup=False)

    def step(self, job: str, text: str) -> None:
        with self._lock:
            self._steps[job] = clean(text)
            self._since.setdefault(job, time.monotonic())
            due = not self._console.is_terminal and time.monotonic() - self._last_said >= _QUIET_SECONDS
            if due:
                self._last_said = time.monotonic()
            steps = dict(self._steps) if due else {}
        for name, what in steps.items():
            self.say(f"{name}: {what}")

    def done(self, job: str) -> None:
        with self._lock:
            self._steps.pop(job, None)
            self._since.pop(job, None)

    def _table(self) -> Table:
        table = Table.grid(padding=(0, 1))
        with self._lock:
            for job, text in self._steps.items():
                seconds = f"{time.monotonic() - self._since[job]:.0f} s"
                table.add_row(_SPINNER, job, f"[dim]{seconds:>6}[/dim]", escape(text[: self._console.width]))
        return table


_SPINNER = Spinner("dots")
