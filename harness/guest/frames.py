"""Frames: pieces of a command's output on a line that the kernel prints on as well.

@<marker>@<number>@<base64>@<md5 of all before>@             a piece
@<marker>@end:<status>:<number of pieces>@@<md5>@             the last one"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import re

from msgspec import Struct

_FRAME = re.compile(
    r"@(?P<said>(?P<marker>[0-9a-f]{24})@(?:(?P<number>\d{1,9})|end:(?P<status>\d{1,9}):(?P<count>\d{1,9}))@(?P<data>[A-Za-z0-9+/]*=*))"
    r"@(?P<sum>[0-9a-f]{32})@"
)
_INSIDE = "[0-9A-Za-z:+/=]"
_CUT = re.compile(rf"(?<!{_INSIDE})(?<!@)(?P<before>{_INSIDE}*+)@(?:{_INSIDE}|@)*+(?=\[ *\d+\.\d+\])|^(?:{_INSIDE}|@)*+(?<=@)$")
"""The beginning of a frame that a kernel message cut short, and the rest of it, on a line of its own. Each stretch of such
characters is looked at once."""


class Frame(Struct, frozen=True):
    """`end` is the status and the number of pieces, for the frame that ends an answer."""

    marker: str
    number: int
    data: bytes
    end: tuple[int, int] | None = None


def take(line: str) -> tuple[list[Frame], str]:
    """The whole frames of a line, and what else is on it. A kernel message in the middle of a line begins with its timestamp,
    in brackets, which no frame has."""
    frames = []
    for match in _FRAME.finditer(line):
        if hashlib.md5(match["said"].encode()).hexdigest() == match["sum"]:
            end = (int(match["status"]), int(match["count"])) if match["status"] else None
            # Whoever knows the marker's form can make one whose data is none.
            with contextlib.suppress(binascii.Error):
                frames.append(
                    Frame(match["marker"], int(match["number"] or 0), base64.b64decode(match["data"], validate=True), end)
                )
    return frames, _CUT.sub(lambda match: match["before"] or "", _FRAME.sub("", line)).strip("\n")
