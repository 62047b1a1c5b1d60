"""How long things took on this machine, so that the longest can go first and work can be shared out evenly."""

from __future__ import annotations

from harness.cache import Cache

_KIND = "durations"


class Durations:
    """Of one architecture, by name: `build`, `test`, `boot`, and cases by their id. Seconds on the clock, the last that were
    seen."""

    def __init__(self, cache: Cache, arch: str) -> None:
        self._cache = cache
        self._arch = arch
        self._known = self._read()
        self._noted: dict[str, float] = {}

    def expect(self, name: str, unknown: float) -> float:
        return self._known.get(name, unknown)

    def note(self, name: str, seconds: float) -> None:
        self._noted[name] = round(seconds, 2)

    def save(self) -> None:
        """Add what was noted to what others have saved since."""
        with self._cache.making(f"records/{_KIND}", "noting how long things took"):
            self._cache.write_record(_KIND, self._arch, {**self._read(), **self._noted})

    def _read(self) -> dict[str, float]:
        return self._cache.read_record(_KIND, self._arch, dict[str, float]) or {}
