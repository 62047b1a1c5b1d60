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
from harness.options import DEFAULT_SERIES, LOCAL, OPTIONS, RunOptions, Use
from harness.suites import Selection
from harness.suites.boot import WITHOUT_SELFTESTS


class Request(Struct, frozen=True):
    """Made by `parse`."""

    series: Series
    tree: str
    archs: tuple[Arch, ...]
    selections: tuple[Selection, ...]
    points: tuple[int, ...]
    """How many patches are in each, in order."""
    options: RunOptions = RunOptions()
    """What all this was made from. What is to be used as it was given is only here."""
    fragments: tuple[Path, ...] = ()
    hosts: tuple[HostSpec, ...] = ()
    """Other machines that guests may run on."""
    scheduler: str = ""
    """The address of that of a Dask cluster whose workers do the jobs."""
    shared: str = ""
    """Where others keep what they have built."""
    given: kernel.Given | None = None
    """A kernel from elsewhere: nothing is applied or built."""
    arguments: tuple[str, ...] = ()
    """Those of the command line that repeat it."""

    @property
    def scope(self) -> str:
        """Equal for requests that ask for the same, but for how much of the matrix and how."""
        options = self.options
        return key(
            "scope",
            1,
            series=self.series.name,
            tree=self.tree,
            selections=self.selections,
            commands=options.commands,
            fragments=self.fragments,
            accel=options.accel,
            toolchain=options.toolchain,
            selftests=options.selftests,
            prebuilt=self.given and self.given.image,
            **self._further,
        )

    @property
    def _further(self) -> dict[str, object]:
        """The options that change results and are not in the scope anyway, unless they have their
        default: a new option does not change the scopes of runs that do not use it."""
        values = {
            name: getattr(self.options, name)
            for name, option in OPTIONS.items()
            if Use.RESULTS in option.uses and name not in _IN_SCOPE
        }
        changed = {name: value for name, value in values.items() if value != OPTIONS[name].default}
        return {"options": changed} if changed else {}


_IN_SCOPE = (
    *("mbox", "series_spec"),  # the series
    "tree_spec",
    *("suite_specs", "commands"),  # the selections
    "fragments",
    "accel",
    "toolchain",
    "selftests",
    *("kernel_image", "modules"),  # the kernel, which its modules belong to
)
"""The options that a scope has as what they were resolved to."""


def parse(
    options: RunOptions,
    cache: Cache | None = None,
    arguments: tuple[str, ...] = (),
) -> Request:
    """Check what was asked for. `arguments` are the words that repeat the command line. Raises
    UserError for options that name nothing, or that exclude each other."""
    found = _load_series(options, cache)
    boots = options.suite_specs is not None
    selections = parse_suites(options.suite_specs or (), options.commands, found) if boots else ()
    points = _parse_points(options, found)
    archs = tuple(arch.chosen(options.archs))
    if options.selftests:
        tree.check_spec(options.selftests)
    _check_kernel(options, archs)
    scheduler = _parse_executor(options)
    for target in archs:
        own = filter(None, [found.fragment])
        for path in kernel.fragments_for(target, [*options.fragments, *own]):
            kernel.read_fragment(path, target.name)
    _check_must_run(found)
    for target in archs:
        kernel.choose(target, options.toolchain)
    spec = tree.spec_for(options.tree_spec, found)
    tree.check_spec(spec)
    return Request(
        series=found,
        tree=spec,
        archs=archs,
        selections=selections,
        points=points,
        options=options,
        fragments=tuple(path.resolve() for path in options.fragments),
        shared=shared.parse_spec(options.shared_cache) if options.shared_cache else "",
        hosts=read_hosts(options.hosts) if options.hosts else (),
        scheduler=scheduler,
        given=_given(options),
        arguments=arguments,
    )


def _load_series(options: RunOptions, cache: Cache | None) -> Series:
    default = "none" if options.kernel_image else DEFAULT_SERIES
    found = series.load(options.series_spec or default, cache, options.mbox)
    if wrong := series.trespasses(found):
        hint = "paths as a/... and b/..., inside of the tree"
        raise UserError(f"{found.name}: {wrong[0]}", hint=hint)
    return found


def _parse_points(options: RunOptions, of: Series) -> tuple[int, ...]:
    if options.per_patch and options.points:
        hint = "--per-patch means base and every patch"
        raise UserError("--per-patch and --points together", hint=hint)
    if options.per_patch:
        return tuple(range(len(of.patches) + 1))
    return series.points.parse(options.points or LAST, of)


def _check_kernel(options: RunOptions, archs: Sequence[Arch]) -> None:
    """Raises UserError if a kernel that was built elsewhere cannot be tested with these options."""
    image = options.kernel_image
    if image is None:
        if options.modules:
            hint = "they are those of a kernel that was built elsewhere"
            raise UserError("--modules without --kernel", hint=hint)
        return
    if not (image.is_file() and os.access(image, os.R_OK)):
        hint = "--kernel takes an image or a linux-image .deb"
        raise UserError(f"no kernel at {image} that can be read", hint=hint)
    if len(archs) != 1 or options.fragments or options.points or options.per_patch:
        raise UserError(
            "--kernel is one kernel, and it is already built",
            hint="it takes exactly one --arch, and excludes --config, --points and --per-patch",
        )


def _given(options: RunOptions) -> kernel.Given | None:
    if options.kernel_image is None:
        return None
    modules = options.modules.resolve() if options.modules else None
    return kernel.Given(options.kernel_image.resolve(), modules)


def _parse_executor(options: RunOptions) -> str:
    """The address of a cluster's scheduler, empty if this machine does the jobs."""
    if options.executor == LOCAL:
        return ""
    kind, _, address = options.executor.partition(":")
    if kind != "dask" or "://" not in address:
        hint = "local, or dask:tcp://HOST:PORT as `dask scheduler` says it"
        raise UserError(f"unknown executor '{options.executor}'", hint=hint)
    if options.kernel_image:
        hint = "a kernel that is there is tested here, or with --hosts"
        raise UserError("--kernel and a cluster", hint=hint)
    if options.hosts:
        hint = "a worker may have a HARNESS_HOSTS of its own"
        raise UserError("--hosts (or HARNESS_HOSTS) and a cluster", hint=hint)
    return address


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
