"""Prove that an image was made from a vmlinux: the image holds the build id that the linker gave vmlinux.

The build id (ld --build-id=sha1, top Makefile) is a hash of what was linked. It lies in the .notes section, which every image
carries, compressed or not, and which the running kernel shows as /sys/kernel/notes."""

from __future__ import annotations

import bz2
import lzma
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection

from harness import process
from harness.cache import Cache
from harness.errors import HarnessError
from harness.model import Kernel

_NOTE = re.compile(rb"(?:\x04\0\0\0\x14\0\0\0\x03\0\0\0|\0\0\0\x04\0\0\0\x14\0\0\0\x03)GNU\0(?P<id>.{20})", re.DOTALL)
"""An ELF note of 20 bytes, of type NT_GNU_BUILD_ID, in either byte order (elf(5))."""


class NotProved(HarnessError):
    """An image was not made from the vmlinux beside it, or it cannot be proved that it was. The message says which."""


def build_id(path: Path) -> str:
    """The GNU build id of an ELF file, in hexadecimal; empty if it has none or is no ELF file."""
    try:
        with path.open("rb") as file:
            for section in ELFFile(file).iter_sections():
                for note in section.iter_notes() if isinstance(section, NoteSection) else ():
                    if note["n_type"] == "NT_GNU_BUILD_ID" and note["n_name"] == "GNU":
                        return str(note["n_desc"])
    except (ELFError, OSError, ValueError, KeyError, UnicodeDecodeError):
        return ""
    return ""


def module_ids(modules: Path) -> dict[str, str]:
    """The build id of each module below lib/modules/<release> of the folder, by its path from there; empty for a module that is
    compressed."""
    root = modules / "lib" / "modules"
    found = sorted(path for suffix in ("", ".gz", ".xz", ".zst") for path in root.glob(f"*/**/*.ko{suffix}"))
    return {str(Path(*path.relative_to(root).parts[1:])): build_id(path) for path in found}


def image_ids(image: Path, cache: Cache) -> tuple[str, ...]:
    """All build ids in an image: the kernel's, and those of the programs it holds, such as the vDSO."""
    found = (match["id"].hex() for content in _contents(image, cache) for match in _NOTE.finditer(content))
    return tuple(dict.fromkeys(found))


def prove(image: Path, vmlinux: Path, cache: Cache) -> str:
    """The build id of `vmlinux`. Raises NotProved if it has none, or if `image` does not hold it."""
    wanted = build_id(vmlinux)
    if not wanted:
        raise NotProved(f"{vmlinux.name} has no build id", hint="the linker gives it one: LDFLAGS_vmlinux has --build-id=sha1")
    if not any(bytes.fromhex(wanted) in content for content in _contents(image, cache)):
        raise NotProved(
            f"{image.name} does not hold the build id of vmlinux, {wanted}: it was made from another kernel",
            hint="an image whose compression is unknown cannot be proved either: see harness/kernel/identity.py",
        )
    return wanted


def check(kernel: Kernel, cache: Cache) -> None:
    """Raises NotProved if the files of a cached kernel are no longer those that were built."""
    found = prove(kernel.image, kernel.vmlinux, cache)
    if kernel.build_ids != (found,):
        raise NotProved(f"vmlinux has the build id {found}, and was built with {', '.join(kernel.build_ids)}")
    if module_ids(kernel.modules) != kernel.module_ids:
        raise NotProved("the modules are not those that were built")


def _contents(image: Path, cache: Cache) -> Iterator[bytes]:
    """The image itself, then the unpacked content of each compressed part in it."""
    data = image.read_bytes()
    yield data
    for magic, unpack in _FORMATS:
        for found in magic.finditer(data):
            if content := unpack(memoryview(data)[found.start() :], cache):
                yield content


class _Decompressor(Protocol):
    def decompress(self, data: memoryview, /) -> bytes: ...


def _in_python(make: Callable[[], _Decompressor]) -> Callable[[memoryview, Cache], bytes]:
    def unpack(data: memoryview, cache: Cache) -> bytes:
        try:
            return make().decompress(data)
        except (zlib.error, lzma.LZMAError, OSError, EOFError, ValueError):
            return b""

    return unpack


def _by_program(*command: str) -> Callable[[memoryview, Cache], bytes]:
    """Unpacks with a program. The kernel's build called the same one to compress the image, so it is installed."""
    script = f'{" ".join(command)} <"$1" >"$2" 2>/dev/null'

    def unpack(data: memoryview, cache: Cache) -> bytes:
        if process.which(command[0]) is None:
            return b""
        with cache.scratch() as scratch:
            packed, content = scratch / "packed", scratch / "content"
            packed.write_bytes(data)
            # Other data follows the compressed data, so the program fails, but only after it has unpacked everything.
            process.run(["sh", "-c", script, "sh", packed, content], check=False)
            return content.read_bytes()

    return unpack


_FORMATS: tuple[tuple[re.Pattern[bytes], Callable[[memoryview, Cache], bytes]], ...] = (
    (re.compile(rb"(?=\x02\x21\x4c\x18)"), _by_program("lz4", "-d", "-c")),
    (re.compile(rb"(?=\x28\xb5\x2f\xfd)"), _by_program("zstd", "-d", "-c")),
    (re.compile(rb"(?=\x89LZO\0\r\n\x1a\n)"), _by_program("lzop", "-d", "-c")),
    (re.compile(rb"(?=\x1f\x8b\x08[\0-\x1f])"), _in_python(lambda: zlib.decompressobj(wbits=31))),
    (re.compile(rb"(?=\xfd7zXZ\0)"), _in_python(lzma.LZMADecompressor)),
    (re.compile(rb"(?=\]\0\0..\xff{8})", re.DOTALL), _in_python(lambda: lzma.LZMADecompressor(lzma.FORMAT_ALONE))),
    (re.compile(rb"(?=BZh[1-9]1AY&SY)"), _in_python(bz2.BZ2Decompressor)),
)
"""The magic number of each compression of kernel images (init/Kconfig, KERNEL_GZIP and the others), and the function that unpacks
it. Two magic numbers may overlap in the data, so each pattern is a look-ahead."""
