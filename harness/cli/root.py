"""What all commands share: their group and the terminal."""

from __future__ import annotations

import logging
import sys

import click
from rich.console import Console

from harness import __version__

# A table that is folded to what nobody looks at is no use.
OUT = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 200)
ERR = Console(stderr=True, highlight=False, soft_wrap=True)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="harness")
@click.option("-v", "--verbose", is_flag=True, help="Print every command that is run.")
def cli(verbose: bool) -> None:
    """Apply a kernel series, build, boot and test it, and tell the truth about it.

    \b
    harness run                                    the bundled series on every architecture
    harness run --series none --arch arm64         the tree as it is
    harness run --suite 'ftracetest:dynevent/*'    some cases of one suite
    """
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, format="%(message)s", stream=sys.stderr)
