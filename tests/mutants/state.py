"""Keep the verdicts of earlier runs, and drop those that are out of date."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from tests.mutants.generate import Mutant
from tests.mutants.judge import Tried, Verdict


class Entry(Struct, frozen=True):
    id: str
    scope: str
    """Digest of the mutant's function at that time."""
    tests: str
    """Digest of the tests that decided it, at that time."""
    tried: Tried


class State:
    """A file with one line for each verdict. Lines are appended at once, so that a killed run loses only the mutants that it was
    trying."""

    def __init__(
        self, path: Path, digests: Mapping[str, str], imported: Mapping[str, Sequence[str]], tests: str, afresh: bool = False
    ) -> None:
        """`digests` are those of the project's files now; `imported` are the files in tests/ that each file there imports,
        directly or not; `tests` is the folder of the tests. Earlier verdicts are ignored if it starts `afresh`."""
        self._path = path
        always = {file: digest for file, digest in digests.items() if file.endswith("/conftest.py")}
        self._of_test = {
            file: _together({**always, file: digest, **{other: digests[other] for other in imported.get(file, ())}})
            for file, digest in digests.items()
            if file.startswith(f"{tests}/")
        }
        data = {file: one for file, one in digests.items() if file.startswith("tests/data/")}
        self._all = _together({**always, **self._of_test, **data})
        self._entries: dict[str, Entry] = {}
        for line in path.read_bytes().splitlines() if path.exists() and not afresh else []:
            try:
                entry = msgspec.json.decode(line, type=Entry)
            except msgspec.MsgspecError:
                continue  # the last line of a run that was killed
            self._entries[entry.id] = entry

    def known(self, mutant: Mutant) -> Tried | None:
        """An earlier verdict, if neither the mutant's function nor the tests that decided it have changed since."""
        entry = self._entries.get(mutant.id)
        if entry is None or entry.scope != mutant.scope or entry.tried.verdict is Verdict.UNTESTED:
            return None
        return entry.tried if entry.tests == self._tests(entry.tried) else None

    def add(self, mutant: Mutant, tried: Tried) -> None:
        entry = Entry(mutant.id, mutant.scope, self._tests(tried), tried)
        self._entries[mutant.id] = entry
        with self._path.open("ab") as file:
            file.write(msgspec.json.encode(entry) + b"\n")

    def _tests(self, tried: Tried) -> str:
        """A mutant that survived may be noticed by any new test; one that was killed needs only its test, and what that
        imports."""
        if tried.verdict is Verdict.SURVIVED:
            return self._all
        return self._of_test.get(tried.by.partition("::")[0], "")


def _together(digests: Mapping[str, str]) -> str:
    return hashlib.sha256(repr(sorted(digests.items())).encode()).hexdigest()[:16]
