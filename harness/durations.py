"""How long things took on this machine, so that the longest can go first and work can be shared out evenly."""

from __future__ import annotations

import threading

from harness.cache import Cache

_KIND = "durations"


class Durations:
    """Of one architecture, by name: `build`, `boot`, and cases by their id. Seconds on the clock, the last that were seen."""

    def __init__(self, cache: Cache, arch: str) -> None:
        self._cache = cache
        self._arch = arch
        self._lock = threading.Lock()
        self._seconds = cache.read_record(_KIND, arch, dict[str, float]) or {}

    def expect(self, name: str, unknown: float) -> float:
        return self._seconds.get(name, unknown)

    def note(self, name: str, seconds: float) -> None:
        with self._lock:
            self._seconds[name] = round(seconds, 2)

    def save(self) -> None:
        with self._lock:
            self._cache.write_record(_KIND, self._arch, self._seconds)
