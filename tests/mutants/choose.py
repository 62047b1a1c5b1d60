"""Choose the tests that can notice a mutant, and their order."""

from __future__ import annotations

from collections import Counter

from tests.mutants.generate import Mutant
from tests.mutants.watch import Passed

_FIRST = 2
"""Files of the first batch of tests."""


class Chooser:
    def __init__(self, passed: Passed) -> None:
        self._passed = passed
        self._kills: dict[str, Counter[str]] = {}

    def tests(self, mutant: Mutant) -> list[str]:
        """The tests that run the changed statement. If it is outside of functions, or no test was recorded to run it (a child
        that is killed or in a sandbox leaves no record), the tests that run any line of the file, or else all. First come
        tests that killed other mutants of the file, then the quickest."""
        lines = self._passed.lines.get(mutant.file, {})
        names: set[str] = set()
        if mutant.function:
            names = {name for line in range(mutant.first, mutant.last + 1) for name in lines.get(line, ())}
        names = names or {name for tests in lines.values() for name in tests} or {*self._passed.seconds}
        kills = self._kills.get(mutant.file, Counter())
        known = (name for name in names if name in self._passed.seconds)
        return sorted(known, key=lambda name: (-kills[name], self._passed.seconds[name], name))

    def batches(self, mutant: Mutant) -> list[list[str]]:
        """The tests in two batches; none if no test can notice the mutant. To import all files of tests takes longer than most
        tests, so the first batch has the tests of a few files only, and most mutants need no second one."""
        tests = self.tests(mutant)
        files = list(dict.fromkeys(name.partition("::")[0] for name in tests))[:_FIRST]
        first = [name for name in tests if name.partition("::")[0] in files]
        rest = [name for name in tests if name.partition("::")[0] not in files]
        return [batch for batch in (first, rest) if batch]

    def killed(self, mutant: Mutant, by: str) -> None:
        self._kills.setdefault(mutant.file, Counter())[by] += 1

    @property
    def expected(self) -> dict[str, float]:
        return self._passed.seconds
