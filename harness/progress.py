"""Say what is going on: a table with a row for each job on a terminal, timestamped lines elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType

from msgspec import Struct
from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from harness.logs.lines import clean, clean_text

_QUIET_SECONDS = 30.0
"""Without a terminal, how often a step that goes on says so."""
_HEARD = 300
"""Bytes of a console's last line that are looked at."""


class _Row(Struct):
    """What a job does right now."""

    since: float
    """When it began to do something, by the clock that `Progress` was given."""
    stage: str = ""
    count: str = ""
    red: int = 0
    text: str = ""
    expected: float = 0.0
    """Seconds that the stage took before, 0 if nobody knows."""
    began: float = 0.0
    """The stage."""


class Progress:
    """A context manager, used from several threads. `say` leaves a line, `step` shows what a job does right now, `heard` what its
    guest said last, `done` that it does nothing any more. A `quiet` one says nothing at all."""

    def __init__(self, console: Console, quiet: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._quiet = quiet
        self._clock = clock
        self._lock = threading.Lock()
        self._rows: dict[str, _Row] = {}
        self._last_said = -_QUIET_SECONDS
        self._live = Live(console=console, transient=True, refresh_per_second=4, get_renderable=self.table)

    def __enter__(self) -> Progress:
        self._last_said = self._clock()
        if self.moving:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.moving:
            self._live.stop()

    @property
    def moving(self) -> bool:
        """Whether somebody watches."""
        return self._console.is_terminal and not self._quiet

    def say(self, text: str) -> None:
        if self._quiet:
            return
        stamp, text = time.strftime("%H:%M:%S"), clean_text(text)
        if self._console.is_terminal:
            self._console.print(f"[dim]{stamp}[/dim] {escape(text)}")
        else:
            self._console.print(f"{stamp} {text}", markup=False)

    def step(self, job: str, stage: str, text: str = "", *, count: str = "", red: int = 0, expected: float = 0.0) -> None:
        """`count` is what is done of it, `red` how much of that is red; `expected` seconds are what the stage took before."""
        now = self._clock()
        with self._lock:
            row = self._rows.setdefault(job, _Row(now))
            if row.stage != stage:
                row.stage, row.began, row.expected = stage, now, 0.0
            row.count, row.red, row.text = count, red, clean(text)
            row.expected = expected or row.expected
            due = not self.moving and now - self._last_said >= _QUIET_SECONDS
            if due:
                self._last_said = now
            said = [f"{name}: {_words(one)}" for name, one in self._rows.items()] if due else []
        for line in said:
            self.say(line)

    def heard(self, job: str, data: bytes) -> None:
        """From the console of its guest."""
        line = clean(data[-_HEARD:].rstrip().rpartition(b"\n")[2])
        with self._lock:
            if line.strip() and (row := self._rows.get(job)):
                row.text = line

    def done(self, job: str) -> None:
        with self._lock:
            self._rows.pop(job, None)

    def table(self) -> Table:
        """As the terminal shows it."""
        table = Table(box=None, pad_edge=False, show_header=bool(self._rows), header_style="dim")
        for name, justify in (("job", "left"), ("stage", "left"), ("elapsed", "right"), ("left", "right"), ("done", "right")):
            table.add_column(name, justify=justify, no_wrap=True)  # type: ignore[arg-type]
        table.add_column("red", justify="right", style="red", no_wrap=True)
        # rich narrows the columns that may wrap first; this one alone may, and its text does not.
        table.add_column("", style="dim")
        now = self._clock()
        with self._lock:
            for job, row in self._rows.items():
                left = _span(row.expected - (now - row.began)) if row.expected > now - row.began else ""
                words = (job, row.stage, _span(now - row.since), left, row.count, str(row.red or ""))
                table.add_row(*map(escape, words), Text(row.text, no_wrap=True, overflow="ellipsis"))
        return table


def _words(row: _Row) -> str:
    red = f"{row.red} red" if row.red else ""
    return f"{row.stage}: " + ", ".join(filter(None, [row.count, red, row.text])) if row.count or row.text else row.stage


def _span(seconds: float) -> str:
    """95 is 1:35."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
