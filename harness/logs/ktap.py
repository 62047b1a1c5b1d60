"""Parse KTAP and TAP, as the kernel, KUnit and kselftest print them, out of a log that holds other text too.

A block begins with a version line, a plan or an announced subtest. An `ok` that a test prints outside of one counts for
nothing. Nesting is by indentation; the `# ` that kselftest puts before a subtest's lines counts as such.
`tapline` reads single lines, `taptree` makes a tree of them, `taplevel` compares results with what was promised.

A log without a plan at depth 0 is never green: its end may be missing, and nothing would show it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from harness.logs.lines import clean, without_printk_prefix
from harness.logs.taplevel import Node
from harness.logs.taptree import Tree
from harness.model import Outcome

_LONGEST_NAME = 1000
"""Characters. Every case has the names of its parents in its own: without a limit, nested subtests with long names fill
the memory."""


class KtapCase(Struct, frozen=True, gc=False):
    """A result without subtests. `name` has those of its parents before it, joined with dots."""

    name: str
    outcome: Outcome
    diagnostic: str = ""


def parse(text: Iterable[str | bytes]) -> list[KtapCase]:
    """All cases in a log, in order, with unique names.

    A result that a plan promised and that never came is `lost`; so is a parent whose own result never came. A case `plan`
    is red if there are more results than planned, two plans or none; a case `totals`, if the test's own totals differ."""
    tree = Tree()
    for line in text:
        tree.feed(without_printk_prefix(clean(line)))
    return _unique(case for node in tree.finish() for case in _cases(node, ""))


def summary(cases: Iterable[KtapCase]) -> dict[str, int]:
    """How many cases have each outcome."""
    return dict(Counter(case.outcome.value for case in cases))


def _cases(node: Node, prefix: str) -> list[KtapCase]:
    name = f"{prefix}.{node.name}" if prefix else node.name
    if len(name) > _LONGEST_NAME:
        name = f"{name[: _LONGEST_NAME // 2]} ... {name[-_LONGEST_NAME // 4 :]}"
    below = [case for child in node.children for case in _cases(child, name)]
    # A parent that is red for a reason of its own must not vanish behind its children.
    if below and (node.outcome.green or any(_explains(case.outcome, node.outcome) for case in below)):
        return below
    return [*below, KtapCase(name, node.outcome, node.diagnostic)]


def _explains(child: Outcome, parent: Outcome) -> bool:
    """True if a child's outcome explains its parent's red one."""
    return child is parent or (parent is Outcome.FAIL and not child.green and child is not Outcome.LOST)


def _unique(cases: Iterable[KtapCase]) -> list[KtapCase]:
    """The cases, with `#2`, `#3` and so on behind a name that was there before."""
    seen: set[str] = set()
    copies: Counter[str] = Counter()
    result = []
    for case in cases:
        name = case.name
        while name in seen:
            copies[case.name] += 1
            name = f"{case.name}#{copies[case.name] + 1}"
        seen.add(name)
        result.append(case if name is case.name else KtapCase(name, case.outcome, case.diagnostic))
    return result
