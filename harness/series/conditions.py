"""Check that the configuration symbols exist that claims and measures depend on.

A condition on a symbol that no Kconfig file defines is never met, so a typing error would switch off the case or its limits.
The kernel's own tools do not notice it: for Kconfig, an unknown symbol is not set."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from harness.errors import InfrastructureError, UserError
from harness.model import Condition, Patch
from harness.tree import Store

_DEFINED = re.compile(r"^\s*(?:menu)?config\s+(\w+)\s*$")
_MOST_NAMED = 5


def unmet(conditions: Iterable[Condition], store: Store, commit: str, patches: Iterable[Patch]) -> list[Condition]:
    """The conditions on symbols that neither the tree at `commit` nor the `patches` define in a Kconfig file."""
    conditions = tuple(conditions)
    wanted = {condition.symbol for condition in conditions}
    missing = wanted - defined_in(store, commit, wanted) if wanted else set()
    missing -= added_by(patches) if missing else set()
    return [condition for condition in conditions if condition.symbol in missing]


def check(conditions: Iterable[Condition], store: Store, commit: str, patches: Iterable[Patch], tree: str) -> None:
    """Raises UserError, with file and line, for unmet conditions. `tree` names the tree in the message."""
    if wrong := unmet(conditions, store, commit, patches):
        lines = [f"{one.where}: no Kconfig file of {tree} or of the series defines {one.symbol}" for one in wrong[:_MOST_NAMED]]
        more = [f"and {len(wrong) - _MOST_NAMED} more"] if len(wrong) > _MOST_NAMED else []
        suites = " and ".join(sorted({one.suite for one in wrong}))
        hint = f"correct the symbol's name there; or, if this tree is too old to have it, name suites without {suites}: --suite"
        raise UserError("\n".join([*lines, *more]), hint=hint)


def defined_in(store: Store, commit: str, symbols: Collection[str]) -> set[str]:
    """The subset of `symbols` that a Kconfig file of the tree at `commit` defines."""
    pattern = rf"^[[:space:]]*(menu)?config[[:space:]]+({'|'.join(sorted(symbols))})[[:space:]]*$"
    found = store.git("grep", "-h", "-E", "-e", pattern, commit, "--", ":(glob)**/Kconfig*", check=False)
    if found.returncode not in (0, 1):  # 1: nothing matched
        raise InfrastructureError(f"git cannot search the Kconfig files of {commit}", hint=found.stdout.strip())
    return {match[1] for line in found.stdout.splitlines() if (match := _DEFINED.match(line))}


def added_by(patches: Iterable[Patch]) -> set[str]:
    """The symbols that patches add to Kconfig files."""
    found: set[str] = set()
    for patch in patches:
        if any(file.rpartition("/")[2].startswith("Kconfig") for file in patch.files):
            lines = patch.path.read_text(errors="replace").splitlines()
            found |= {match[1] for line in lines if line.startswith("+") and (match := _DEFINED.match(line[1:]))}
    return found
