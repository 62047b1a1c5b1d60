"""The options of the commands that build and boot: one table, from which the command line,
`--resume`, reproduce commands, batches for workers and KCIDB follow.

To add an option, add a field to RunOptions in table.py and use its value."""

from harness.options.line import Argument, CommandLine, compose, read
from harness.options.option import BISECT, BUILD, RUN, SHELL, Option, Resume, Use
from harness.options.table import DEFAULT_SERIES, LOCAL, OPTIONS, RunOptions

__all__ = [
    "BISECT",
    "BUILD",
    "DEFAULT_SERIES",
    "LOCAL",
    "OPTIONS",
    "RUN",
    "SHELL",
    "Argument",
    "CommandLine",
    "Option",
    "Resume",
    "RunOptions",
    "Use",
    "compose",
    "read",
]
