"""Recognize a log that is no text: compressed, in UTF-16, or systemd's own format. No report can be seen in one."""

from __future__ import annotations

_BEGINNINGS = (
    (b"\x1f\x8b", "compressed with gzip", "zcat"),
    (b"\xfd7zXZ\0", "compressed with xz", "xzcat"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd", "zstdcat"),
    (b"BZh", "compressed with bzip2", "bzcat"),
    (b"\x04\x22\x4d\x18", "compressed with lz4", "lz4cat"),
    (b"PK\x03\x04", "a ZIP file", "unzip -p"),
    (b"LPKSHHRH", "a journal of systemd", "journalctl --dmesg --file"),
)
_LOOKED_AT = 1000
"""Bytes."""
_MOST_NULS = 4
"""If more than one byte in so many is NUL, it is UTF-16. A serial line may print a few NULs."""


def packed(beginning: bytes) -> tuple[str, str]:
    """What the log with this beginning is instead of text, and the command that makes text of it; empty if it is text."""
    for magic, name, command in _BEGINNINGS:
        if beginning.startswith(magic):
            return name, command
    some = beginning[:_LOOKED_AT]
    if some.count(0) * _MOST_NULS > len(some):
        return "text in UTF-16, or no text", "iconv --from-code UTF-16 --to-code UTF-8"
    return "", ""
