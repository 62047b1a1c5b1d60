"""Whether the disk will do, before anything is built: a disk that is full after an hour has cost an
hour."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence

from msgspec import Struct

from harness import kernel
from harness.arch import Arch
from harness.cache import sizes
from harness.cache.contents import shown
from harness.errors import InfrastructureError
from harness.job.context import Context
from harness.model import Point

_MB = 1 << 20
_MOST = {"kernel": 250 * _MB, "build": 2048 * _MB, "initramfs": 50 * _MB, "work tree": 2048 * _MB}
"""More than any architecture takes with our configurations. Where there is room for that, nothing
has to be looked at."""
_LEAST = {"kernel": 0.07, "build": 0.55, "initramfs": 0.002}
"""For an architecture that was not built here yet: shares of the size of the source tree, which are
a little less than the smallest that was measured (Linux 6.12, all six architectures: 1640 MiB of
sources, kernels of 125 to 155, build folders of 962 to 1466, initramfs of 4.2 to 5.7)."""


class Need(Struct, frozen=True):
    """What the jobs of a run will write to the cache's disk, in bytes."""

    kernels: int = 0
    """How many are to be built."""
    folders: int = 0
    """How many build folders are to be made."""
    size: int = 0

    def __add__(self, other: Need) -> Need:
        kernels = self.kernels + other.kernels
        return Need(kernels, self.folders + other.folders, self.size + other.size)


def check(context: Context, points: Sequence[Point]) -> None:
    """Raises InfrastructureError if the kernels of these points will not fit."""
    if context.request.given:
        return
    free = shutil.disk_usage(context.cache.directory("")).free
    planned = list(_planned(context, points))
    if sum((_bound(context, arch, len(own)) for arch, own in planned), _MOST["work tree"]) <= free:
        return
    tree = context.store.size(context.tree.commit)
    need = sum((_need(context, arch, own, tree) for arch, own in planned), Need())
    if need.kernels and not any(context.cache.root.glob("work/build*/source")):
        need += Need(size=tree)
    if need.size > free:
        raise InfrastructureError(
            f"the disk of the cache {context.cache.root} has {shown(free)} free, and what is to be "
            f"built takes {shown(need.size)} or more (kernels: {need.kernels}, new build folders: "
            f"{need.folders})",
            hint="`harness cache prune --keep-days N` makes room; --cache DIR takes another disk",
        )


def _planned(context: Context, points: Sequence[Point]) -> Iterator[tuple[Arch, list[Point]]]:
    """The points that are left to build, for each architecture. Nothing is built of a point whose
    patches do not apply."""
    results = context.applied.results
    good = [one for one in points if all(patch.state.good for patch in results[: one.number])]
    for arch in context.request.archs:
        yield arch, [point for point in good if not _is_finished(context, arch, point)]


def _is_finished(context: Context, arch: Arch, point: Point) -> bool:
    return context.before.job(arch.name, point.name).finished


def _bound(context: Context, arch: Arch, kernels: int) -> int:
    """No less than what these kernels take, if they must all be built."""
    known = sizes.expect(context.cache, arch.name)
    each = (known.kernel or _MOST["kernel"]) + (known.initramfs or _MOST["initramfs"])
    return kernels and kernels * each + (known.build or _MOST["build"])


def _need(context: Context, arch: Arch, points: Sequence[Point], tree: int) -> Need:
    """`tree` is the size of the sources."""
    if not points:
        return Need()
    cache, request = context.cache, context.request
    toolchain = kernel.detect(arch, request.options.toolchain)
    own = tuple(filter(None, [request.series.fragment]))
    fragments = kernel.fragments_for(arch, [*request.fragments, *own])
    digests = {kernel.digest_for(point, arch, fragments, toolchain, cache) for point in points}
    missing = sum(not (cache.root / "kernels" / digest).is_dir() for digest in digests)
    if not missing:
        return Need()
    folder = any(cache.root.glob(f"work/build*/{arch.name}-{toolchain.kind}"))
    known = sizes.expect(cache, arch.name)
    each = _either(known.kernel, _LEAST["kernel"] * tree)
    if request.selections:
        each += _either(known.initramfs, _LEAST["initramfs"] * tree)
    build = 0 if folder else _either(known.build, _LEAST["build"] * tree)
    return Need(missing, int(not folder), missing * each + build)


def _either(known: int | None, estimate: float) -> int:
    return int(estimate) if known is None else known
