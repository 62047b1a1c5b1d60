"""What earlier guests found out about this host. It holds until the machine is started again."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from harness.arch import Arch
from harness.cache import Cache

_KIND = "host"
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def key(arch: Arch) -> str:
    """Under which guests of `arch` on this host, since it was started, are recorded."""
    return f"{_BOOT_ID.read_text().strip()}-{arch.name}"


class Host:
    """Of guests of one architecture."""

    def __init__(self, arch: Arch, cache: Cache, key: str) -> None:
        """`key` as `Place.key` has it."""
        self._machine = arch.guest
        self._cache = cache
        self._key = key

    @property
    def parameters(self) -> tuple[str, ...]:
        """For the kernel's command line."""
        known = self._known()
        return (self._machine.tell.format(*known),) if known else ()

    def learn(self, said: Iterable[str]) -> None:
        """From the lines of a good boot: the last that has it. The first boot of them all has the word."""
        if self._machine.learn and not self._known():
            found = [match.groups() for line in said if (match := re.search(self._machine.learn, line))]
            if found:
                self._cache.write_record(_KIND, self._key, found[-1])

    def _known(self) -> tuple[str, ...] | None:
        return self._cache.read_record(_KIND, self._key, tuple[str, ...])
