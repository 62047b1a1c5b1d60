"""The values that travel: frozen, typed, built by one stage and read by the next.

    Series -> Tree -> AppliedSeries -> Point -> KernelConfig -> Kernel -> Initramfs -> (a booted guest) -> CaseResult

Paths are absolute, durations are seconds, digests are hexadecimal sha256."""

from __future__ import annotations

import hashlib
import re
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

T = TypeVar("T")


def to_json(value: object) -> bytes:
    """One line of JSON."""
    return msgspec.json.encode(value, enc_hook=str)


def from_json(data: bytes | str, type: type[T]) -> T:
    """Raises msgspec.DecodeError if `data` does not have the shape of `type`."""
    return msgspec.json.decode(data, type=type, dec_hook=_decode_path)


def _decode_path(type: type[Any], value: Any) -> Any:
    return type(value)


class Outcome(StrEnum):
    """What became of a case. The first five are what the test said, the rest is what became of the guest or of us."""

    PASS = "pass"
    FAIL = "fail"
    SKIP = "skip"
    XFAIL = "xfail"
    UNRESOLVED = "unresolved"
    CRASH = "crash"
    """The kernel oopsed, panicked or splatted during it."""
    TIMEOUT = "timeout"
    """Its deadline passed."""
    LOST = "lost"
    """The guest stopped answering, no exit status came back, or a planned case never reported."""
    ERROR = "error"
    """Infrastructure."""
    FLAKY = "flaky"
    """Red at first, it passed when it was tried again: with the same kernel, in the same run."""

    @property
    def green(self) -> bool:
        return self in (Outcome.PASS, Outcome.SKIP, Outcome.XFAIL)


class PatchState(StrEnum):
    APPLIED = "applied"
    FUZZY = "fuzzy"
    """Applied by a 3-way merge: what is around the change is not what it was when the patch was made."""
    UPSTREAM = "upstream"
    """Its change is in the tree already."""
    CONFLICT = "conflict"
    FORBIDDEN = "forbidden"
    """It touches what is not in the tree."""
    NOT_TRIED = "not tried"
    """An earlier patch of the series did not apply."""

    @property
    def good(self) -> bool:
        return self in (PatchState.APPLIED, PatchState.FUZZY, PatchState.UPSTREAM)


class Patch(Struct, frozen=True):
    """One mail of a series: a file in `git am` form."""

    name: str
    path: Path
    subject: str
    files: tuple[str, ...]


class CasePattern(Struct, frozen=True, forbid_unknown_fields=True):
    """Cases by `suite:glob`, on some architectures (all if none is named), and why they are listed."""

    case: str
    reason: str
    arch: tuple[str, ...] = ()


class Claim(Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Something that a series says it changes, or keeps: one value, seen in a guest, before and after."""

    case: str
    """A number and a short name."""
    says: str
    """The claim, in a line."""
    script: str
    """For the guest's shell. It prints one line `value: ...` and ends with status 0."""
    patched: str
    base: str = ""
    not_on_base: str = ""
    """Why it is not tried without the series, in place of `base`: what the base does could not be told from a failure."""
    base_on: dict[str, str] = {}
    """Architectures whose base shows another value than `base`."""
    patched_on: dict[str, str] = {}
    """Likewise for `patched`."""
    needs: tuple[str, ...] = ()
    """Symbols without which the value is ABSENT."""
    seconds: float = 60.0

    def on_base(self, arch: str) -> str:
        return self.base_on.get(arch, self.base)

    def on_patched(self, arch: str) -> str:
        return self.patched_on.get(arch, self.patched)


class Measure(Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Something of a series' that costs: one number, seen in a guest."""

    case: str
    says: str
    """What is measured, in a line."""
    script: str
    """As a claim's; its value is a number."""
    unit: str = "instructions"
    at_most: dict[str, float] = {}
    """Architectures on which more than that, with the series, is red."""
    limits_for: dict[str, str] = {}
    """Symbols, and the values of the configuration that the limits are for: y or n."""
    needs: tuple[str, ...] = ()
    """Symbols without which there is nothing to measure."""
    seconds: float = 60.0


ABSENT = "absent"
"""What a claim shows on a kernel that lacks what it needs."""


class Evidence(Struct, frozen=True, forbid_unknown_fields=True):
    """A piece of text that a file of the tree has, or lacks, if a change is in it already."""

    file: str
    has: str = ""
    lacks: str = ""

    def __post_init__(self) -> None:
        if bool(self.has) == bool(self.lacks):
            raise ValueError(f"evidence in {self.file} needs one of `has` and `lacks`")


class OriginalPatch(Struct, frozen=True, forbid_unknown_fields=True):
    """What became of a patch of the original: it is upstream, or patches of ours do the same, or `reason` says why neither."""

    title: str
    upstream: Evidence | None = None
    patches: tuple[str, ...] = ()
    """Their numbers: NNNN."""
    reason: str = ""

    def __post_init__(self) -> None:
        if self.upstream and self.patches:
            raise ValueError(f"'{self.title}' is either upstream or in this series")
        if not (self.upstream or self.patches or self.reason):
            raise ValueError(f"'{self.title}' is neither upstream nor in this series: give the reason")


class Origin(Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """The series that another was written after."""

    title: str
    message_id: str = ""
    base: str = ""
    patches: tuple[OriginalPatch, ...] = msgspec.field(name="patch", default=())


class Argued(Struct, frozen=True, forbid_unknown_fields=True):
    """Why checkpatch's remarks of a `type` stand, in the patches that a glob names."""

    type: str
    reason: str
    patch: str = "*"

    def __post_init__(self) -> None:
        if not self.reason.strip():
            raise ValueError(f"checkpatch's {self.type} is argued without a reason")


class Series(Struct, frozen=True):
    """Patches in order. `digest` covers their order and content, nothing else."""

    name: str
    origin: str
    digest: str
    patches: tuple[Patch, ...] = ()
    description: str = ""
    tested_on: tuple[str, ...] = ()
    fragment: Path | None = None
    """Symbols that the series must bring; merged at every point, so that kernels compare, and proved where the series is in."""
    must_run: tuple[CasePattern, ...] = ()
    claims: tuple[Claim, ...] = ()
    measures: tuple[Measure, ...] = ()
    written_after: Origin | None = None
    base: str = ""
    """What it was written for, if it says so: a commit, or words."""
    repository: str = ""
    """The git repository that it comes from, which may have the blobs that a 3-way merge wants."""
    notes: tuple[str, ...] = ()
    """How it was come by: what was left out, who signed it."""
    argued: tuple[Argued, ...] = ()
    """A series that argues with checkpatch has nothing to hide from it: what is not argued is an error."""

    @property
    def facts(self) -> list[str]:
        """What is to be known of where it comes from, for people."""
        return [*([f"base: {self.base}"] if self.base else []), *self.notes]

    @property
    def base_commit(self) -> str:
        """`base`, if it is a commit."""
        return self.base if re.fullmatch(r"[0-9a-f]{12,64}", self.base) else ""


class Tree(Struct, frozen=True):
    """A kernel source tree: a commit in the harness's git store, and where it came from."""

    store: Path
    commit: str
    spec: str
    version: str
    """As its Makefile says, 6.12.117."""
    source: str
    """The file, URL or repository it was imported from."""
    sha256: str = ""
    """Of the imported tarball, verified; empty for a git tree, which its commit identifies."""


class PatchResult(Struct, frozen=True):
    patch: str
    subject: str
    state: PatchState
    commit: str = ""
    """Tip after this patch."""
    detail: str = ""
    """What is wrong: for a conflict, the files and hunks."""


class AppliedSeries(Struct, frozen=True):
    """A series on a tree: one commit a patch, kept in the store."""

    base: str
    results: tuple[PatchResult, ...]

    @property
    def complete(self) -> bool:
        return all(result.state.good for result in self.results)

    @property
    def tip(self) -> str:
        commits = [result.commit for result in self.results if result.commit]
        return commits[-1] if commits else self.base


BASE, LAST = "base", "last"
"""The names of the points before the first patch and after all of them."""


class Position(StrEnum):
    """Where in its series a kernel is built, which says what may be expected of it."""

    BASE = "base"
    """Without it."""
    WITHIN = "within"
    """With some of its patches: what the series brings may be there already, or not yet."""
    WHOLE = "whole"


class Point(Struct, frozen=True):
    """A place in the series at which kernels are built."""

    name: str
    """`base` before the first patch, `last` after all of them, else how many there are: NNNN."""
    commit: str
    patch: str = ""
    """The newest patch in it."""
    position: Position = Position.BASE
    number: int = 0
    """Patches up to it."""
    attempt: int = 1
    """Of several at the same place, to see whether something is flaky."""


class SymbolRequest(Struct, frozen=True):
    """A line of a fragment that asks for a value, and where it stands."""

    symbol: str
    """Without CONFIG_."""
    value: str
    """y, m, n, a number, or a quoted string."""
    fragment: str
    line: int
    optional: str = ""
    """The reason why this architecture may go without, or empty."""


class KernelConfig(Struct, frozen=True):
    """A .config that holds all that was asked for."""

    path: Path
    digest: str


class Kernel(Struct, frozen=True):
    """A built kernel, kept under the digest of all that went into it."""

    arch: str
    digest: str
    directory: Path
    release: str
    image: Path
    vmlinux: Path
    modules: Path
    """A folder that holds lib/modules/<release>, with depmod's data."""
    headers: Path
    """Its user-space API and nolibc (tools/include/nolibc): what the guest's own programs are compiled against."""
    config: Path
    config_digest: str
    compiler: str
    objects: int
    seconds: float
    warnings: tuple[str, ...] = ()
    ccache: str = ""
    """Its hit rate in this build, as text; empty without ccache."""
    modules_error: str = ""
    """Why our own modules (qemu/guest/modules/) are not among its modules: what they need is there, but they do not build."""


class Initramfs(Struct, frozen=True):
    path: Path
    digest: str


def label_of(case: str) -> str:
    """What the agent's marks on the console call a case, by its id: one word. ftracetest runs both of a pair at once."""
    suite, _, name = case.partition(":")
    if suite == "command":
        return f"{suite}:{hashlib.sha256(name.encode(errors='replace')).hexdigest()[:8]}"
    return re.sub(r"\s", "_", f"{suite}:{name.removesuffix('@instance')}")


POINTED_OUT = "first in the series' own files: "
"""How the log of a case begins whose evidence leads to the series, with file:line."""


BUILT = ("apply", "config", "build")
"""What is reported like a suite before there is a guest."""

WARNINGS = "build:warnings"
"""The case, by its id, that is red at a point with compiler warnings that the one before has not."""


class CaseResult(Struct, frozen=True):
    """One case of one suite. `name` is unique within its suite and stable between runs."""

    suite: str
    name: str
    outcome: Outcome
    seconds: float = 0.0
    diagnostic: str = ""
    """Why, in a line or a few: the failure, the skip's reason, the splat's title."""
    log: str = ""
    """What the case printed, the splat, or the last console lines."""
    value: float | None = None
    """What it measured, in `unit`."""
    unit: str = ""
    ran: bool = True
    """Whether it came to that: no guest was there for it, or none knew of it, if not."""
    tries: tuple[CaseResult, ...] = ()
    """All of them, in order, if it was tried again."""

    @property
    def id(self) -> str:
        return f"{self.suite}:{self.name}"


class Kind(StrEnum):
    """Of differences between two runs, the most telling first."""

    NEWLY_RED = "newly red"
    FLAKY = "flaky"
    """Another outcome with the same kernel, guest and expectations."""
    GONE = "gone"
    NEWLY_GREEN = "newly green"
    NEW = "new"
    SLOWER = "slower"


class Difference(Struct, frozen=True):
    """A case that is not what it was. A result is None in a run that has no such case."""

    arch: str
    point: str
    case: str
    kind: Kind
    before: CaseResult | None
    after: CaseResult | None

    @property
    def red(self) -> bool:
        """Whether it is worse than it was."""
        return self.kind in (Kind.NEWLY_RED, Kind.GONE) or (self.after is not None and not self.after.outcome.green)


class Usage(Struct, frozen=True):
    """What a run took: seconds on the clock, CPU seconds of the harness and all its children, and how many cores it had."""

    wall: float
    cpu: float
    cores: int

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.wall + other.wall, self.cpu + other.cpu, self.cores)

    @property
    def share(self) -> float:
        """Of the cores' time."""
        return self.cpu / (self.wall * self.cores) if self.wall else 0.0
