"""The table of options: each is declared once, as a field of RunOptions.

The field has the option's name, type and default; a tuple is an option that can be repeated. For a
command that does not take the option, the value is the default."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec import Struct

from harness import paths
from harness.options.option import BISECT, BUILD, RUN, SHELL, Option, Resume, Use, declared
from harness.sandbox import Sandbox

DEFAULT_SERIES: Final = "fprobe-on-fgraph"
LOCAL: Final = "local"
"""The executor that is this machine."""


# fmt: off
class RunOptions(Struct, frozen=True, kw_only=True):
    """The values of the options, as they were given: none is checked against another."""

    # Which patches, on which tree.

    mbox: Annotated[Path | None, Option(
        "--mbox", "The mails of a series that only names its origin.",
        metavar="FILE", exists=True,
        uses=Use.RESULTS | Use.REPRODUCE,  # a worker gets the series with its patches
    )] = None

    series_spec: Annotated[str | None, Option(
        "--series", f"Patches: a bundled name (default: {DEFAULT_SERIES}), a directory, an mbox "
        "file, a Maildir, git:REPO#A..B, lore:MESSAGE-ID, or none.",
        metavar="SPEC",
    )] = None

    tree_spec: Annotated[str | None, Option(
        "--tree",
        "debian:PACKAGE[=VERSION], kernel.org:VERSION, tarball:PATH|URL or git:PATH[#REF].",
        metavar="SPEC",
    )] = None

    # Which part of the matrix. A reproduce command has the part of its case.

    archs: Annotated[tuple[str, ...], Option(
        "--arch", "Architecture; repeatable. Default: all.",
        metavar="A", uses=Use.WORKER,
    )] = ()

    points: Annotated[str | None, Option(
        "--points", "base (before the series), last (all of it), the number of a patch (up to "
        "it), or several. Default: last.",
        metavar="P[,P]", commands=(RUN, BUILD, SHELL), uses=Use.WORKER,
    )] = None

    per_patch: Annotated[bool, Option(
        "--per-patch", "At base and after every patch.",
        commands=(RUN, BUILD, SHELL), uses=Use.NOTHING,  # a worker gets --points
    )] = False

    suite_specs: Annotated[tuple[str, ...] | None, Option(
        "--suite", "Suite, or some of its cases; repeatable. `none` just boots. Default: all.",
        metavar="S[:GLOB]", commands=(RUN,), uses=Use.RESULTS | Use.WORKER,
    )] = None
    """None if no guest is booted."""

    commands: Annotated[tuple[str, ...], Option(
        "--cmd", "Shell command to run in the guest; repeatable.",
        metavar="COMMAND", commands=(RUN,), uses=Use.RESULTS | Use.WORKER,
    )] = ()

    retries: Annotated[int, Option(
        "--retry-flaky", "Try what is red again, N times at most: what passes then is reported "
        "as flaky, with all its tries.",
        metavar="N", least=0, commands=(RUN,),
        uses=Use.WORKER,  # it does not change what a case does the first time
    )] = 0

    case: Annotated[str | None, Option(
        "--case", "As the summary of a run names it.",
        metavar="SUITE:NAME", commands=(BISECT,), uses=Use.NOTHING,
    )] = None

    repeat: Annotated[int, Option(
        "--repeat", "Times to be green before it counts.",
        metavar="N", least=1, show_default=True, commands=(BISECT,), uses=Use.NOTHING,
    )] = 1

    good: Annotated[str, Option(
        "--good", "A point at which it is green.",
        metavar="P", show_default=True, commands=(BISECT,), uses=Use.NOTHING,
    )] = "base"

    # What is built and booted, and how.

    fragments: Annotated[tuple[Path, ...], Option(
        "--config", "Another configuration fragment; repeatable.",
    )] = ()

    toolchain: Annotated[str, Option(
        "--toolchain", "Compiler. Default: gcc for every architecture that the distribution has "
        "one for, else LLVM.",
        metavar="gcc|llvm[-N]",
    )] = "auto"

    accel: Annotated[str, Option(
        "--accel", "QEMU's accelerator.",
        choices=("auto", "kvm", "tcg"), show_default=True,
    )] = "auto"

    selftests: Annotated[str, Option(
        "--selftests", "Run the ftrace selftests of another tree, as for --tree.",
        metavar="SPEC", commands=(RUN,),
    )] = ""

    kernel_image: Annotated[Path | None, Option(
        "--kernel", "Test a kernel that was built elsewhere (an image or a linux-image .deb); "
        "apply and build nothing.",
        metavar="IMAGE", commands=(RUN,),
        uses=Use.RESULTS | Use.REPRODUCE,  # it is refused with a cluster
    )] = None

    modules: Annotated[Path | None, Option(
        "--modules", "Its modules: what holds lib/modules.",
        metavar="DIR", commands=(RUN,), uses=Use.RESULTS | Use.REPRODUCE,
    )] = None

    sandbox: Annotated[str, Option(
        "--sandbox", "Patch, configure and build with bubblewrap: no network, and only the "
        "build's own folders to write to.",
        choices=tuple(mode.value for mode in Sandbox), show_default=True,
        uses=Use.WORKER | Use.REPRODUCE,
    )] = Sandbox.AUTO.value

    # Where the work is done.

    jobs: Annotated[int | None, Option(
        "--jobs", "Cores to fill. Default: all.",
        metavar="N", least=1, uses=Use.WORKER | Use.REPRODUCE,
    )] = None

    hosts: Annotated[Path | None, Option(
        "--hosts", "Machines behind SSH that guests may run on: hosts.toml.",
        metavar="FILE", envvar="HARNESS_HOSTS", commands=(RUN, BISECT),
        uses=Use.REPRODUCE,  # a worker may have a HARNESS_HOSTS of its own
    )] = None

    executor: Annotated[str, Option(
        "--executor", "Who does the jobs: this machine, or the workers of a Dask cluster.",
        metavar="local|dask:URL", show_default=True, commands=(RUN,),
        uses=Use.NOTHING, resume=Resume.MAY_DIFFER,
    )] = LOCAL

    # Where files are kept.

    cache: Annotated[Path, Option(
        "--cache", "Where trees, kernels and downloads are kept.",
        envvar="HARNESS_CACHE", file_okay=False, uses=Use.REPRODUCE, resume=Resume.MAY_DIFFER,
    )] = paths.default_cache()

    shared_cache: Annotated[str, Option(
        "--shared-cache", "Where machines share what they build.",
        metavar="DIR|sftp://HOST/DIR", envvar="HARNESS_SHARED_CACHE",
        uses=Use.WORKER | Use.REPRODUCE,
    )] = ""

    history: Annotated[Path, Option(
        "--history", "Where every run is remembered: an SQLite file.",
        envvar="HARNESS_HISTORY", dir_okay=False, commands=(RUN,),
        uses=Use.NOTHING, resume=Resume.MAY_DIFFER,
    )] = paths.default_history()

    out: Annotated[Path, Option(
        "--out", "Where run directories go.",
        file_okay=False, show_default=True, uses=Use.NOTHING,
    )] = Path("runs")

    # This call of the command.

    wait: Annotated[bool, Option(
        "--wait", "Build nothing while another run builds.",
        uses=Use.NOTHING, resume=Resume.NOT_RECORDED,
    )] = False

    install: Annotated[bool, Option(
        "--install", "Install missing tools with apt first.",
        uses=Use.NOTHING, resume=Resume.NOT_RECORDED,
    )] = False

    quiet: Annotated[bool, Option(
        "--quiet", "No progress, just what came of it.",
        short="-q", uses=Use.NOTHING, resume=Resume.NOT_RECORDED,
    )] = False

    gdb: Annotated[bool, Option(
        "--gdb", "Start it stopped, and say how gdb gets to it.",
        commands=(SHELL,), uses=Use.NOTHING,
    )] = False

    command: Annotated[str | None, Option(
        "--cmd", "Run one shell command instead, and end with its exit status.",
        metavar="COMMAND", commands=(SHELL,), uses=Use.NOTHING,
    )] = None

    unfinished: Annotated[Path | None, Option(
        "--resume", "Resume an interrupted run with its original options.",
        metavar="DIR", commands=(RUN, BISECT), uses=Use.NOTHING, resume=Resume.NOT_RECORDED,
    )] = None
# fmt: on


def _table(options: type[RunOptions]) -> Mapping[str, Option]:
    return {field.name: declared(field) for field in msgspec.structs.fields(options)}


OPTIONS: Final = _table(RunOptions)
"""Each option by the name of its field."""
