"""What is known of a job beside its cases: its kernel, its guest and where they come from.

A journal has it as texts, in events `job-properties` that add up; JSON, JUnit and the page show all
of them. Whatever decides something by them reads JobFacts."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Struct


class JobFacts(Struct, frozen=True, kw_only=True):
    """A value is None while it is not known."""

    toolchain: str | None = None
    """As `--toolchain` takes it."""
    base: str | None = None
    """The commit of the tree."""
    commit: str | None = None
    """The commit of the job's point: the tree with the patches up to there."""
    number: int | None = None
    """How many patches these are."""
    patch: str | None = None
    """The last of them, or `none`."""
    tree: str | None = None
    """Where the tree comes from."""
    selftests: str | None = None
    """The commit whose ftrace selftests run."""
    patchset: str | None = None
    """KCIDB's name for the patches; empty if there are none."""
    release: str | None = None
    """What `uname -r` answers."""
    config: str | None = None
    """The digest of the kernel's configuration."""
    compiler: str | None = None
    kernel: str | None = None
    """The kernel's digest, by which the cache has it."""
    warnings: int | None = None
    """How many the compiler gave."""
    objects: int | None = None
    """How many files were compiled."""
    build_id: str | None = None
    initramfs: str | None = None
    """Its digest."""
    qemu: str | None = None
    """The version."""
    accelerator: str | None = None
    host: str | None = None
    """The machine that did the job, or where its guests run, if it is not this one."""
    moved: str | None = None
    """Why its guests changed to another machine."""
    tested: str | None = None
    """The key of all that the results depend on: they are comparable if it is the same."""
    results_of: str | None = None
    """The point whose results these are, because its kernel and guest are the same."""

    @property
    def properties(self) -> dict[str, str]:
        """As a journal has them: those that are known."""
        values = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: str(value) for name, value in values.items() if value is not None}


def read_facts(properties: Mapping[str, str]) -> JobFacts:
    """What these properties of a journal say; those of other versions are left out. Raises
    msgspec.ValidationError for a number that is none."""
    # Not strict: the numbers are texts.
    return msgspec.convert(properties, JobFacts, strict=False)
