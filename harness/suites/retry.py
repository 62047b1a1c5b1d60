"""Red cases that are tried again. One that passes then is not clean, but flaky: all its tries are kept."""

from __future__ import annotations

import glob
import re
from collections.abc import Collection, Iterable, Iterator, Sequence

import msgspec

from harness.model import CaseResult, Outcome
from harness.suites.base import Selection, Suite

_OF_GUEST = re.compile(r" of guest \S+$")


class Reds:
    """The red cases of a kernel, and how they fared."""

    def __init__(self, results: Iterable[CaseResult], suites: Collection[str]) -> None:
        """Of these suites, less what was tried again before."""
        reds = [one for one in results if one.suite in suites and not one.outcome.green and not one.tries]
        self._tries = {result.id: [result] for result in reds}

    def __len__(self) -> int:
        """Those that never passed."""
        return len(self._left())

    def narrow(self, selected: Sequence[tuple[Suite, Selection]]) -> list[tuple[Suite, Selection]]:
        """What has to be run for those that never passed. Cases that build upon each other are run all."""
        names = {suite.name: [one.name for one in self._left() if one.suite == suite.name] for suite, _ in selected}
        return [
            (suite, selection if suite.in_order else Selection(suite.name, tuple(map(glob.escape, names[suite.name]))))
            for suite, selection in selected
            if names[suite.name]
        ]

    def add(self, result: CaseResult) -> bool:
        """One more try; False for a case that is none of them. Of a boot it may be red under the name of its guest."""
        case = _OF_GUEST.sub("", result.id) if result.suite == "boot" else result.id
        if case in self._tries:
            self._tries[case].append(result)
        return case in self._tries

    def settled(self) -> Iterator[CaseResult]:
        """What became of those that were tried again: flaky if one try passed, else what the first one was."""
        for first, *others in self._tries.values():
            if others:
                passed = any(one.outcome is Outcome.PASS for one in others)
                said = ", ".join(one.outcome.value for one in (first, *others))
                why = "\n".join(filter(None, [f"{len(others) + 1} tries: {said}", first.diagnostic]))
                outcome = Outcome.FLAKY if passed else first.outcome
                yield msgspec.structs.replace(first, outcome=outcome, diagnostic=why, tries=(first, *others))

    def _left(self) -> list[CaseResult]:
        return [tries[0] for tries in self._tries.values() if not any(one.outcome is Outcome.PASS for one in tries)]
