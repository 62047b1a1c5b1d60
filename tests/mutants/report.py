"""Count the verdicts of all mutants, and decide whether the session is red."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.mutants.generate import Mutant
from tests.mutants.judge import Tried, Verdict
from tests.mutants.listed import Equivalent, as_toml

_KILLED = (Verdict.KILLED, Verdict.TIMEOUT)


class Report:
    def __init__(
        self,
        mutants: Mapping[str, Sequence[Mutant]],
        found: Mapping[str, Tried],
        equivalent: Sequence[Equivalent],
        at_least: float,
    ) -> None:
        """`mutants` of each file, `found` for the mutants' ids, `equivalent` for these files."""
        self._mutants = mutants
        self._found = found
        self._at_least = at_least
        self._listed = {one.key: one for one in equivalent}

    def rows(self) -> Iterator[tuple[str, ...]]:
        yield ("module", "mutants", "killed", "timeout", "listed", "alive", "untested", "left")
        total: Counter[str] = Counter()
        for file, mutants in self._mutants.items():
            counts = self._counts(mutants)
            total += counts
            yield (file, *self._row(counts))
        yield ("all", *self._row(total))

    @staticmethod
    def _row(counts: Counter[str]) -> tuple[str, ...]:
        return tuple(str(counts[name]) for name in ("mutants", "killed", "timeout", "listed", "alive", "untested", "left"))

    def _counts(self, mutants: Sequence[Mutant]) -> Counter[str]:
        counts = Counter({"mutants": len(mutants)})
        for mutant in mutants:
            tried = self._found.get(mutant.id)
            if tried is None:
                counts["left"] += 1
            elif tried.verdict is Verdict.SURVIVED:
                counts["listed" if mutant.key in self._listed else "alive"] += 1
            else:
                counts[tried.verdict.value] += 1
        return counts

    def survivors(self) -> Iterator[Mutant]:
        """The mutants that survived and are not listed."""
        for mutants in self._mutants.values():
            for mutant in mutants:
                tried = self._found.get(mutant.id)
                if tried and tried.verdict is Verdict.SURVIVED and mutant.key not in self._listed:
                    yield mutant

    def problems(self) -> Iterator[str]:
        """Everything that makes the session red."""
        total: Counter[str] = Counter()
        for file, mutants in self._mutants.items():
            counts = self._counts(mutants)
            total += counts
            if not mutants:
                yield f"{file}: it has nothing to change: take it off the list of modules"
            elif not counts["left"] and not counts["killed"]:
                yield f"{file}: no test failed for any of its {len(mutants)} mutants"
            if counts["untested"]:
                why = next(one.by for one in self._tried(mutants) if one.verdict is Verdict.UNTESTED)
                yield f"{file}: {counts['untested']} mutants could not be tried: {why}"
        if total["alive"]:
            yield f"{total['alive']} mutants survived: add a test that notices each, or list it with the reason why none can"
        yield from self._stale()
        if total["left"]:
            yield f"unfinished: {total['left']} of {total['mutants']} mutants are left; run the session again to go on"
        decided = total["mutants"] - total["left"]
        killed = total["killed"] + total["timeout"]
        if decided and killed < self._at_least * decided:
            yield f"the tests noticed {killed} of {decided} mutants, {killed / decided:.1%}: {self._at_least:.0%} is the least"

    def _tried(self, mutants: Sequence[Mutant]) -> Iterator[Tried]:
        return (self._found[mutant.id] for mutant in mutants if mutant.id in self._found)

    def _stale(self) -> Iterator[str]:
        """Messages about entries of the list that no longer excuse a mutant."""
        by_key = {mutant.key: mutant for mutants in self._mutants.values() for mutant in mutants}
        for key in self._listed:
            where = f"{key[0]}: {key[1] or 'outside of functions'}: '{key[2]}' -> '{key[3]}'"
            mutant = by_key.get(key)
            if mutant is None:
                yield f"listed, but there is no such mutant any more: {where}"
            elif (tried := self._found.get(mutant.id)) and tried.verdict in _KILLED:
                yield f"listed as one that no test can notice, but {tried.by} does: {where}"


def difference(mutant: Mutant, root: Path) -> str:
    """The mutant as a diff, and the entry that would list it."""
    old = (root / mutant.file).read_text(encoding="utf-8")
    one, two = (text.splitlines(keepends=True) for text in (old, mutant.applied(old)))
    diff = "".join(difflib.unified_diff(one, two, mutant.file, mutant.file, n=1))
    return f"{diff}{as_toml(mutant.key)}\n"


def table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join([row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))])
        for row in rows
    )
