"""The command line: parses, calls one function, prints. No logic."""

from __future__ import annotations

import signal
import sys
from types import FrameType

import click
from rich.markup import escape

from harness.cli import cache, doctor, jobs, known, logs, series
from harness.cli.root import ERR, cli
from harness.errors import HarnessError
from harness.logs.lines import clean_text

__all__ = ["cache", "cli", "doctor", "jobs", "known", "logs", "main", "series"]


def main() -> None:
    """Run a command and end with its exit code. SIGTERM and SIGHUP end it as Ctrl-C does: partial results are kept."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        code = cli.main(standalone_mode=False)
    except click.exceptions.Abort:
        code = 130
    except KeyboardInterrupt:
        code = 130
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except HarnessError as error:
        ERR.print(f"[red]error:[/red] {escape(clean_text(error.message))}")
        if error.hint:
            ERR.print(f"[yellow]hint:[/yellow] {escape(clean_text(error.hint))}")
        code = error.exit_code
    except Exception:
        ERR.print_exception()
        code = 3  # Python's own 1 would say that a case is red
    sys.exit(code or 0)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
