"""Compare the totals that tests print of their own results with the results in the log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.logs.taplevel import Node
from harness.logs.tapline import Totals
from harness.model import Outcome

_MOST_CLAIMS = 8
"""The number of totals that are kept for one result. KUnit prints two."""


class Claims:
    """The totals that KUnit printed before the result that they belong to, by the depth of that result."""

    def __init__(self) -> None:
        self._waiting: dict[int, list[Totals]] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, depth: int, totals: Totals) -> None:
        claims = self._waiting.setdefault(depth, [])
        if len(claims) < _MOST_CLAIMS:
            claims.append(totals)

    def clear(self) -> None:
        self._waiting.clear()

    def check(self, depth: int, node: Node, children: list[Node]) -> list[Node]:
        """A red `totals` node if the totals that were printed for a result at this depth are wrong; else nothing."""
        claimed = self._waiting.get(depth, [])
        self._waiting = {at: claims for at, claims in self._waiting.items() if at < depth}
        return _wrong(claimed, children, node)

    def left(self, results: list[Node]) -> list[Node]:
        """The same for totals behind which no result came, at the end of a block with these results."""
        return _wrong([totals for claims in self._waiting.values() for totals in claims], results)


def _wrong(claimed: Iterable[Totals], children: list[Node], node: Node | None = None) -> list[Node]:
    wrong: list[str] = []
    for totals in claimed:
        results = leaves(children) if totals.name == "Totals" else children
        if node and totals.total and not any(one.stated for one in results):
            results = [node]
        wrong += filter(None, [disagreement(totals, results)])
    return [Node(0, "totals", Outcome.LOST, "\n".join(wrong))] if wrong else []


def disagreement(totals: Totals, results: Sequence[Node]) -> str:
    """A message about the difference between a test's own totals and the results in the log; empty if they agree.

    kselftest's totals may be lower: a program that forks prints results in one process and counts them in another."""
    stated = [node.stated for node in results]
    passed, failed, skipped, xfailed = (
        stated.count(Outcome.PASS),
        sum(one is not None and not one.green for one in stated),
        stated.count(Outcome.SKIP),
        stated.count(Outcome.XFAIL),
    )
    counted = passed + failed + skipped + xfailed
    if totals.kunit:
        agree = (totals.passed, totals.failed, totals.skipped) == (passed, failed, skipped) and totals.total == counted
    else:
        agree = totals.failed <= failed and totals.total <= counted
    if agree:
        return ""
    return (
        f"{totals.name}: the test counted pass:{totals.passed} fail:{totals.failed} skip:{totals.skipped} "
        f"total:{totals.total}, the log holds pass:{passed} fail:{failed} skip:{skipped} total:{counted}"
    )


def leaves(nodes: Sequence[Node]) -> list[Node]:
    """The results without subtests, in order."""
    found: list[Node] = []
    for node in nodes:
        below = leaves(node.children) if node.children else []
        if any(child.stated is not None for child in below):
            found += below
        else:
            found.append(node)
    return found
