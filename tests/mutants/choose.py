"""Which tests can notice a mutant, and in which order they are tried."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tests.mutants.generate import Mutant
from tests.mutants.watch import Passed


class Chooser:
    def __init__(self, passed: Passed) -> None:
        self._passed = passed
        self._kills: dict[str, Counter[str]] = {}

    def tests(self, mutant: Mutant) -> list[str]:
        """Those that run the changed statement. Of what stands outside of functions, and of what no test was seen to run (a
        child in a sandbox, or one that is killed, leaves no record), those that run any line of the file, or else all. Tests
        that have killed others of the same file come first, then the quickest."""
        lines = self._passed.lines.get(mutant.file, {})
        names: set[str] = set()
        if mutant.function:
            names = {name for line in range(mutant.first, mutant.last + 1) for name in lines.get(line, ())}
        names = names or {name for tests in lines.values() for name in tests} or {*self._passed.seconds}
        kills = self._kills.get(mutant.file, Counter())
        known = (name for name in names if name in self._passed.seconds)
        return sorted(known, key=lambda name: (-kills[name], self._passed.seconds[name], name))

    def killed(self, mutant: Mutant, by: str) -> None:
        self._kills.setdefault(mutant.file, Counter())[by] += 1

    def seconds(self, tests: Iterable[str]) -> float:
        return sum(self._passed.seconds[name] for name in tests)

    @property
    def expected(self) -> dict[str, float]:
        return self._passed.seconds
