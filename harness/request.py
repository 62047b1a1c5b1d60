"""What a run was asked for: the words of the command line, checked and turned into values before anything is started."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from harness import arch, kernel, series, shared, suites, tree
from harness.arch import Arch
from harness.cache import Cache
from harness.errors import UserError
from harness.hosts import HostSpec, read_hosts
from harness.keys import key
from harness.model import LAST, Series
from harness.sandbox import Sandbox
from harness.suites import Selection
from harness.suites.boot import WITHOUT_SELFTESTS

DEFAULT = "fprobe-on-fgraph"
"""The series, if none is named."""
LOCAL = "local"
"""The executor that is us."""


class Request(Struct, frozen=True):
    """Made by `parse`."""

    series: Series
    tree: str
    archs: tuple[Arch, ...]
    selections: tuple[Selection, ...]
    points: tuple[int, ...]
    """How many patches are in each, in order."""
    fragments: tuple[Path, ...] = ()
    commands: tuple[str, ...] = ()
    """For the guest's shell."""
    jobs: int | None = None
    """Cores to fill."""
    accel: str = "auto"
    toolchain: str = kernel.AUTO
    sandbox: Sandbox = Sandbox.AUTO
    selftests: str = ""
    """A tree whose ftrace selftests take the place of the kernel's own."""
    hosts: tuple[HostSpec, ...] = ()
    """Other machines that guests may run on."""
    scheduler: str = ""
    """The address of that of a Dask cluster whose workers do the jobs."""
    retries: int = 0
    """How often a red case is tried again."""
    shared: str = ""
    """Where others keep what they have built."""
    given: kernel.Given | None = None
    """A kernel from elsewhere: nothing is applied or built."""
    arguments: tuple[str, ...] = ()
    """Those of the command line that repeat it."""

    @property
    def scope(self) -> str:
        """Equal for requests that ask for the same, but for how much of the matrix and how."""
        return key(
            "scope",
            1,
            series=self.series.name,
            tree=self.tree,
            selections=self.selections,
            commands=self.commands,
            fragments=self.fragments,
            accel=self.accel,
            toolchain=self.toolchain,
            selftests=self.selftests,
            prebuilt=self.given and self.given.image,
        )


def parse(
    *,
    series_spec: str | None,
    cache: Cache | None = None,
    mbox: Path | None = None,
    suite_specs: Sequence[str] | None = None,
    tree_spec: str | None,
    archs: Sequence[str],
    points: str | None = None,
    per_patch: bool = False,
    fragments: Sequence[Path],
    jobs: int | None,
    accel: str,
    toolchain: str,
    sandbox: str = "auto",
    selftests: str = "",
    retries: int = 0,
    hosts: Path | None = None,
    shared_cache: str = "",
    executor: str = LOCAL,
    kernel_image: Path | None = None,
    modules: Path | None = None,
    arguments: tuple[str, ...],
    commands: tuple[str, ...] = (),
) -> Request:
    """Check what the command line says. Without `suite_specs` nothing is booted. Raises UserError for anything that names
    nothing."""
    found = series.load(series_spec or ("none" if kernel_image else DEFAULT), cache, mbox)
    if wrong := series.trespasses(found):
        raise UserError(f"{found.name}: {wrong[0]}", hint="paths as a/... and b/..., inside of the tree")
    selections = () if suite_specs is None else parse_suites(suite_specs, commands, found)
    if per_patch and points:
        raise UserError("--per-patch and --points together", hint="--per-patch means base and every patch")
    wanted = tuple(range(len(found.patches) + 1)) if per_patch else series.points.parse(points or LAST, found)
    targets = tuple(arch.chosen(archs))
    if selftests:
        tree.check_spec(selftests)
    if modules and not kernel_image:
        raise UserError("--modules without --kernel", hint="they are those of a kernel that was built elsewhere")
    if kernel_image and not (kernel_image.is_file() and os.access(kernel_image, os.R_OK)):
        raise UserError(f"no kernel at {kernel_image} that can be read", hint="--kernel takes an image or a linux-image .deb")
    if kernel_image and (len(targets) != 1 or fragments or points or per_patch):
        raise UserError("a kernel from elsewhere is one kernel", hint="--arch A, and no --config, --points or --per-patch")
    if scheduler := _scheduler(executor):
        if kernel_image:
            raise UserError("--kernel and a cluster", hint="a kernel that is there is tested here, or with --hosts")
        if hosts:
            raise UserError("--hosts (or HARNESS_HOSTS) and a cluster", hint="a worker may have a HARNESS_HOSTS of its own")
    for target in targets:
        for path in kernel.fragments_for(target, [*fragments, *filter(None, [found.fragment])]):
            kernel.read_fragment(path, target.name)
    _check_must_run(found)
    for target in targets:
        kernel.choose(target, toolchain)
    spec = tree.spec_for(tree_spec, found)
    tree.check_spec(spec)
    return Request(
        series=found,
        tree=spec,
        archs=targets,
        selections=selections,
        points=wanted,
        fragments=tuple(path.resolve() for path in fragments),
        commands=commands,
        jobs=jobs,
        accel=accel,
        toolchain=toolchain,
        sandbox=Sandbox(sandbox),
        selftests=selftests,
        retries=retries,
        shared=shared.parse_spec(shared_cache) if shared_cache else "",
        hosts=read_hosts(hosts) if hosts else (),
        scheduler=scheduler,
        given=kernel.Given(kernel_image.resolve(), modules.resolve() if modules else None) if kernel_image else None,
        arguments=arguments,
    )


def _check_must_run(found: Series) -> None:
    """Raises UserError, with file and line, for a must-run entry that can match no case."""
    own = {"claims": [claim.case for claim in found.claims], "bench": [measure.case for measure in found.measures]}
    names = {name: own.get(name, suite.cases) for name, suite in suites.ALL.items() if name != "command"}
    for number, entry in enumerate(found.must_run):
        for name in entry.arch:
            if name not in arch.names():
                message, hint = f"unknown architecture '{name}'", f"one of {', '.join(arch.names())}"
                raise series.wrong(found, "must-run", number, "arch", message=message, hint=hint)
        suite, _, glob = entry.case.partition(":")
        cases = names.get(suite, ())
        if not glob or (cases is not None and not fnmatch.filter(cases, glob)):
            hint = f"write SUITE:NAME, where NAME may be a glob; suites: {', '.join(names)}"
            if cases:
                hint = f"the cases of {suite} are {', '.join(cases)}"
            message = f"must-run '{entry.case}' can match no case"
            raise series.wrong(found, "must-run", number, "case", message=message, hint=hint)


def _scheduler(executor: str) -> str:
    """Empty if we do it ourselves."""
    kind, _, address = executor.partition(":")
    if executor != LOCAL and not (kind == "dask" and "://" in address):
        raise UserError(f"unknown executor '{executor}'", hint="local, or dask:tcp://HOST:PORT as `dask scheduler` says it")
    return address


def parse_suites(specs: Sequence[str], commands: Sequence[str] = (), of: Series = series.NONE) -> tuple[Selection, ...]:
    """`NAME` or `NAME:GLOB`, several of one suite joined. Without any, all suites that a run of the series `of` has; `none`, or
    commands alone, only boot the guest. Raises UserError."""
    lacking = [name for name, said in {"claims": of.claims, "bench": of.measures}.items() if not said]
    known = [name for name in suites.ALL if name not in ("command", *lacking)]
    globs: dict[str, list[str]] = {}
    if "none" in specs or (commands and not specs):
        globs["boot"] = list(WITHOUT_SELFTESTS)
    for spec in specs:
        name, _, glob = spec.partition(":")
        if name in lacking:
            hint = f"a {name}.toml beside its patches says what a guest must show; see patches/fprobe-on-fgraph/"
            raise UserError(f"the series '{of.name}' has no {name}", hint=hint)
        if name not in (*known, "none") or spec.startswith("none:"):
            raise UserError(
                f"unknown suite '{name}'",
                hint=f"one of {', '.join(known)}; NAME:GLOB for some of its cases; none for just a boot",
            )
        if name != "none":
            globs.setdefault(name, []).extend([glob] if glob else [])
    for command in commands:
        check_command(command)
    if len(set(commands)) < len(commands):
        raise UserError("the same command twice", hint="a case needs a name of its own: add a comment to it, 'true # again'")
    whole = {name for name in globs if name in specs}
    wanted = set(globs) or set(known)
    if commands:
        wanted.add("command")
    return tuple(Selection(name, () if name in whole else tuple(globs.get(name, ()))) for name in suites.ALL if name in wanted)


def check_command(command: str) -> None:
    """Raises UserError for one that does nothing, and so would always end well."""
    if not command.strip():
        raise UserError("an empty command", hint="--cmd COMMAND takes what the guest's shell is to run")
