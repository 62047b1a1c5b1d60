"""What all commands share: their group, the terminal, the options that several of them take."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console

from harness import __version__, paths
from harness.request import LOCAL
from harness.sandbox import Sandbox

F = TypeVar("F", bound=Callable[..., Any])

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


def cache_option(function: F) -> F:
    return click.option(
        "--cache",
        type=click.Path(file_okay=False, path_type=Path),
        envvar="HARNESS_CACHE",
        default=paths.default_cache(),
        help="Where trees, kernels and downloads are kept.",
    )(function)


def history_option(function: F) -> F:
    return click.option(
        "--history",
        type=click.Path(dir_okay=False, path_type=Path),
        envvar="HARNESS_HISTORY",
        default=paths.default_history(),
        help="Where every run is remembered: an SQLite file.",
    )(function)


def mbox_option(function: F) -> F:
    return click.option(
        "--mbox",
        type=click.Path(exists=True, path_type=Path),
        metavar="FILE",
        help="The mails of a series that only names its origin.",
    )(function)


def resume_option(function: F) -> F:
    return click.option(
        "--resume",
        "unfinished",
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="Go on with one that was cut short, as it was started.",
    )(function)


def elsewhere_options(function: F) -> F:
    """What is taken from elsewhere."""
    options = (
        click.option("--selftests", default="", metavar="SPEC", help="Run the ftrace selftests of another tree, as for --tree."),
        click.option(
            "--kernel",
            "kernel_image",
            type=click.Path(path_type=Path),
            metavar="IMAGE",
            help="Test a kernel that was built elsewhere (an image or a linux-image .deb); apply and build nothing.",
        ),
        click.option("--modules", type=click.Path(path_type=Path), metavar="DIR", help="Its modules: what holds lib/modules."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def retry_option(function: F) -> F:
    return click.option(
        "--retry-flaky",
        "retries",
        type=click.IntRange(min=0),
        default=0,
        metavar="N",
        help="Try what is red again, N times at most: what passes then is reported as flaky, with all its tries.",
    )(function)


def hosts_option(function: F) -> F:
    return click.option(
        "--hosts",
        type=click.Path(path_type=Path),
        envvar="HARNESS_HOSTS",
        metavar="FILE",
        help="Machines behind SSH that guests may run on: hosts.toml.",
    )(function)


def executor_option(function: F) -> F:
    return click.option(
        "--executor",
        default=LOCAL,
        show_default=True,
        metavar="local|dask:URL",
        help="Who does the jobs: this machine, or the workers of a Dask cluster.",
    )(function)


def points_options(function: F) -> F:
    for option in (
        click.option(
            "--points",
            metavar="P[,P]",
            help="base (before the series), last (all of it), the number of a patch (up to it), or several. Default: last.",
        ),
        click.option("--per-patch", is_flag=True, help="At base and after every patch."),
    ):
        function = option(function)
    return function


def job_options(function: F) -> F:
    """The options that say what is built."""
    options = (
        click.option(
            "--series",
            "series_spec",
            metavar="SPEC",
            help="Patches: a bundled name (default: fprobe-on-fgraph), a directory, an mbox file, a Maildir, git:REPO#A..B, "
            "lore:MESSAGE-ID, or none.",
        ),
        click.option(
            "--tree",
            "tree_spec",
            metavar="SPEC",
            help="debian:PACKAGE[=VERSION], kernel.org:VERSION, tarball:PATH|URL or git:PATH[#REF].",
        ),
        click.option("--arch", "archs", multiple=True, metavar="A", help="Architecture; repeatable. Default: all."),
        click.option(
            "--config",
            "fragments",
            multiple=True,
            type=click.Path(path_type=Path),
            help="Another configuration fragment; repeatable.",
        ),
        click.option("--jobs", type=click.IntRange(min=1), metavar="N", help="Cores to fill. Default: all."),
        click.option(
            "--toolchain",
            default="auto",
            metavar="gcc|llvm[-N]",
            help="Compiler. Default: gcc for every architecture that the distribution has one for, else LLVM.",
        ),
        click.option(
            "--accel", type=click.Choice(["auto", "kvm", "tcg"]), default="auto", show_default=True, help="QEMU's accelerator."
        ),
        click.option(
            "--sandbox",
            type=click.Choice([mode.value for mode in Sandbox]),
            default=Sandbox.AUTO.value,
            show_default=True,
            help="Patch, configure and build with bubblewrap: no network, and only the build's own folders to write to.",
        ),
        click.option(
            "--out",
            type=click.Path(file_okay=False, path_type=Path),
            default=Path("runs"),
            show_default=True,
            help="Where run directories go.",
        ),
        click.option(
            "--shared-cache",
            default="",
            envvar="HARNESS_SHARED_CACHE",
            metavar="DIR|sftp://HOST/DIR",
            help="Where machines share what they build.",
        ),
        click.option("--wait", is_flag=True, help="Build nothing while another run builds."),
        click.option("--install", is_flag=True, help="Install missing tools with apt first."),
        click.option("-q", "--quiet", is_flag=True, help="No progress, just what came of it."),
    )
    for option in reversed(options):
        function = option(function)
    return cache_option(mbox_option(function))
