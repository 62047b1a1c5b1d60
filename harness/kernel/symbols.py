"""Say where in the source the frames of a report are: file:line beside every function, by one call of addr2line."""

from __future__ import annotations

import bisect
import functools
import itertools
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from harness import process
from harness.errors import CommandFailed, InfrastructureError
from harness.model import POINTED_OUT, Kernel

_FRAME = re.compile(r"(?<![\w.])(?P<name>[A-Za-z_][\w.]*+)\+0x(?P<offset>[0-9a-f]{1,8})/0x(?P<size>[0-9a-f]{1,8})\b(?! \[)")
"""Modules are installed without debugging information: their frames stay as they are."""
_EXACT = re.compile(r"\b(?:E?IP|RIP|PC|e?pc|era|NIP)\b")
"""Says of what stands behind it that it is where a CPU is, and not where it will return to."""
_BARE = re.compile(r"\bis at 0x(?P<address>[0-9a-f]+)")
_PLACE = re.compile(r"(?P<file>/[^:?]+)(?P<line>:\d+)")
_NEAR = 100
_LIMIT = 2000
"""Frames of one report that are looked up."""


class _Place(Struct, frozen=True):
    end: int
    """In the text, behind the frame."""
    address: int
    shown: str = ""
    """A name for an address that came without one."""


class Symbols:
    """Of one kernel, built from sources that lie in a folder called `source`."""

    def __init__(self, kernel: Kernel, addr2line: str) -> None:
        self._vmlinux = kernel.vmlinux
        self._addr2line = addr2line

    def locate(self, text: str, ours: Collection[str] = ()) -> str:
        """`text` with file:line behind each frame of the kernel's own, as far as they are known; before it a line that names the
        first frame in one of the files `ours`, if there is one."""
        if not self._vmlinux.exists():
            return text  # built elsewhere
        places = list(itertools.islice(self._places(text), _LIMIT))
        lines = self._lines([place.address for place in places])
        pieces, position, first = [], 0, ""
        for place in places:
            where = lines.get(place.address, [])
            pieces.append(text[position : place.end])
            position = place.end
            if told := ", inlined at ".join(where):
                pieces.append(f" {place.shown}({told})")
            own = next((one for one in where if one.rpartition(":")[0] in ours), "")
            if own and not first:
                first = f"{POINTED_OUT}{own}\n"
        return first + "".join([*pieces, text[position:]])

    def _places(self, text: str) -> Iterator[_Place]:
        names, addresses, indexes = _symbols(self._vmlinux.parent / "System.map")
        for match in sorted([*_FRAME.finditer(text), *_BARE.finditer(text)], key=lambda match: match.end()):
            if match.re is _BARE:
                address = int(match["address"], 16)
                at = bisect.bisect_right(addresses, address) - 1
                if 0 <= at < len(addresses) - 1:
                    yield _Place(match.end(), address, f"{names[at]}+{address - addresses[at]:#x} ")
            else:
                offset, size = int(match["offset"], 16), int(match["size"], 16)
                start = _start(indexes.get(match["name"], ()), size, addresses)
                if start is not None:
                    before = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
                    # What a call returns to may be another line already.
                    yield _Place(match.end(), start + offset - (offset > 0 and not _EXACT.search(before[-_NEAR:])))

    def _lines(self, addresses: Sequence[int]) -> dict[int, list[str]]:
        """Innermost first, where something was inlined."""
        if not addresses:
            return {}
        try:
            asked = [f"{address:#x}" for address in dict.fromkeys(addresses)]
            said = process.run([self._addr2line, "-a", "-i", "-e", self._vmlinux, *asked], timeout=60).stdout
        except (CommandFailed, InfrastructureError):
            return {}  # the report is worth telling without it
        found: dict[int, list[str]] = {}
        here: list[str] = []
        for line in said.splitlines():
            if line.startswith("0x"):
                here = found.setdefault(int(line, 16), [])
            elif place := _PLACE.match(line):  # it may have something to say about the file as well
                here.append(place["file"].rpartition("/source/")[2] + place["line"])
        return found


@functools.lru_cache(maxsize=4)
def _symbols(path: Path) -> tuple[list[str], list[int], dict[str, list[int]]]:
    """Names and addresses of System.map, by address, and where in these lists a name is."""
    rows = sorted((int(address, 16), name) for address, _, name in (line.split() for line in path.read_text().splitlines()))
    indexes: dict[str, list[int]] = {}
    for index, (_, name) in enumerate(rows):
        indexes.setdefault(name, []).append(index)
    return [name for _, name in rows], [address for address, _ in rows], indexes


def _start(indexes: Sequence[int], size: int, addresses: Sequence[int]) -> int | None:
    """Of several functions of one name the one that is that long."""
    for index in indexes:
        if index + 1 < len(addresses) and addresses[index + 1] - addresses[index] == size:
            return addresses[index]
    return addresses[indexes[0]] if indexes else None
