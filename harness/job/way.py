"""Where the guests of one job run, and how."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from harness import guest
from harness.arch import Arch
from harness.cache import Cache
from harness.guest import HERE, Accelerator, Boot, Guest, Host, Place, PlaceLost
from harness.hosts import Fleet


class Way:
    """To the machine that the fleet chose. If it breaks, another one is chosen, this one at last."""

    place: Place
    accelerator: Accelerator
    version: str
    """Of QEMU there."""

    def __init__(self, fleet: Fleet, arch: Arch, boot: Boot, cache: Cache, wanted: str, moved: Callable[[str], None]) -> None:
        """`moved` is told why another machine takes over. Raises InfrastructureError if an accelerator is wanted that cannot be
        had."""
        self._fleet = fleet
        self._arch = arch
        self._boot = boot
        self._cache = cache
        self._wanted = wanted
        self._moved = moved
        self._choose()

    @contextlib.contextmanager
    def started(
        self, directory: Path, counts: bool, tee: Callable[[bytes], None], boot: Boot, name: str = "console"
    ) -> Iterator[Guest]:
        """As guest.started. One that `counts` instructions runs here, where nothing else differs from run to run. Raises
        PlaceLost; the next one is started elsewhere then."""
        place, accelerator = (HERE, Accelerator.TCG) if counts else (self.place, self.accelerator)
        try:
            host = None if counts else Host(self._arch, self._cache, place.key(self._arch))
            with guest.started(self._arch, accelerator, directory, boot, name, tee, host, place) as found:
                yield found
        except PlaceLost as lost:
            if place is self.place:
                self._leave(lost)
            raise

    def _choose(self) -> None:
        self.place = self._fleet.choose(self._arch)
        try:
            self.accelerator = self.place.accelerator(self._arch, self._boot, self._cache, self._wanted)
            self.version = self.place.version(self._arch)
        except PlaceLost as lost:
            self._leave(lost)

    def _leave(self, lost: PlaceLost) -> None:
        self._moved(f"{lost.message}; what is left runs elsewhere")
        self._fleet.lose(self.place)
        self._choose()
