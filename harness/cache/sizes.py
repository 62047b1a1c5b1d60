"""How much disk the kernels of an architecture took when they were built here."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from harness.cache import Cache

_KIND = "sizes"


class Sizes(Struct, frozen=True):
    """In bytes, for one architecture: the last that were made; None if none was."""

    kernel: int | None = None
    build: int | None = None
    """The build folder."""
    initramfs: int | None = None


def note(cache: Cache, arch: str, **sizes: int) -> None:
    """Remember some of the sizes for `expect`."""
    with cache.making(f"records/{_KIND}", "noting how big things are"):
        cache.write_record(_KIND, arch, msgspec.structs.replace(expect(cache, arch), **sizes))


def expect(cache: Cache, arch: str) -> Sizes:
    """What `note` was given last."""
    return cache.read_record(_KIND, arch, Sizes) or Sizes()
