"""Trees of results for Hypothesis, and the logs that KUnit, kselftest, Perl and node-tap would print of them."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st
from msgspec import Struct

from harness.model import Outcome

# For each verdict: True for `ok`, False for `not ok`; the directive after the name; the outcome.
VERDICTS = {
    "pass": (True, "", Outcome.PASS),
    "fail": (False, "", Outcome.FAIL),
    "skip": (True, " # SKIP no such thing", Outcome.SKIP),
    "xfail": (True, " # XFAIL as it is known", Outcome.XFAIL),
    "todo": (False, " # TODO later", Outcome.XFAIL),
    "timeout": (False, " # TIMEOUT 45 seconds", Outcome.TIMEOUT),
    "unresolved": (False, " # UNRESOLVED", Outcome.UNRESOLVED),
}
NOISE = (
    "random: crng init done",
    "this is ok 1 with me",
    "    # b: EXPECTATION FAILED at lib/b.c:12",
    "    Expected 1 == 2, but",
    "",
    "# a remark",
    "not quite what was expected",
    "okay",
    "----",
)
PREFIXES: tuple[Callable[[int], str], ...] = (
    lambda number: "",
    lambda number: f"[{number / 7:12.6f}] ",
    lambda number: f"[{number / 7:12.6f}][{f'T{number % 300}':>6}] ",
)
GREEN = ("pass", "skip", "xfail", "todo")
RED = ("fail", "timeout", "unresolved")


class Item(Struct, frozen=True):
    """A test, with its subtests. The verdict of one with subtests follows from theirs, but for `broken`: red by itself."""

    name: str
    verdict: str
    children: tuple[Item, ...] = ()
    broken: bool = False

    @property
    def red(self) -> bool:
        return self.broken or any(one.red for one in self.children) or (not self.children and self.verdict in RED)

    @property
    def own(self) -> str:
        """The verdict on this item's own line."""
        if not self.children:
            return self.verdict
        return "fail" if self.red else "pass"


def leaves(items: tuple[Item, ...], above: str = "") -> list[tuple[str, Outcome]]:
    """The cases that the parser must return for the tree."""
    found: list[tuple[str, Outcome]] = []
    for item in items:
        name = f"{above}{item.name}"
        found += leaves(item.children, f"{name}.")
        if not item.children or (item.broken and not any(one.red for one in item.children)):
            found.append((name, VERDICTS[item.own][2]))
    return found


def items(depth: int, verdicts: tuple[str, ...], broken: bool = True, least: int = 1) -> st.SearchStrategy[tuple[Item, ...]]:
    """Siblings, with subtests down to a depth, all with different names."""
    words = st.sampled_from(["a", "fork()", "x=1", "with two words", "v1.5", "ok", "not"])
    flags = st.sampled_from([False, False, False, broken])
    below = items(depth - 1, verdicts, broken, least) if depth > 1 else st.just(())
    nested = st.one_of(st.just(()), below) if depth > 1 else below
    one = st.builds(Item, words, st.sampled_from(verdicts), nested, flags)
    return st.lists(one, min_size=least, max_size=3).map(
        lambda drawn: tuple(
            Item(f"{item.name} {number}", item.verdict, item.children, item.broken and bool(item.children))
            for number, item in enumerate(drawn, 1)
        )
    )


def result(number: int, item: Item, dash: str = "") -> str:
    passed, directive, _ = VERDICTS[item.own]
    return f"{'ok' if passed else 'not ok'} {number} {dash}{item.name}{directive}"


def ktap(tree: tuple[Item, ...], nest: str = "  ") -> list[str]:
    """As ktap.rst has it; with the nest `# `, as kselftest's runner passes on what a test prints."""
    lines = ["KTAP version 1", f"1..{len(tree)}"]
    for number, item in enumerate(tree, 1):
        if item.children:
            lines += [nest + line for line in ktap(item.children, nest)]
        lines.append(result(number, item))
    return lines


def kselftest(tree: tuple[Item, ...]) -> list[str]:
    return ["TAP version 13", *ktap(tree, "# ")[1:]]


def perl(tree: tuple[Item, ...]) -> list[str]:
    """Test::More: the name of a subtest at its parent's depth, and the plan at the end."""
    lines = []
    for number, item in enumerate(tree, 1):
        if item.children:
            lines += [f"# Subtest: {item.name}", *("    " + line for line in perl(item.children))]
        lines.append(result(number, item, "- "))
    return [*lines, f"1..{len(tree)}"]


def braces(tree: tuple[Item, ...]) -> list[str]:
    """node-tap, buffered: the parent's result first, its subtests in braces."""
    lines = []
    for number, item in enumerate(tree, 1):
        own = result(number, item, "- ")
        lines += [f"{own} {{", *("    " + line for line in braces(item.children)), "}"] if item.children else [own]
    return [*lines, f"1..{len(tree)}"]


def counts(tree: tuple[Item, ...]) -> str:
    own = [item.own for item in tree]
    total = {key: own.count(key) for key in ("pass", "fail", "skip")}
    return " ".join(f"{key}:{count}" for key, count in total.items()) + f" total:{len(own)}"


def kunit(suites: tuple[Item, ...]) -> list[str]:
    """lib/kunit/test.c: suites, cases, parameters. Only passes, failures and skips."""
    lines = ["KTAP version 1", f"1..{len(suites)}"]
    for number, suite in enumerate(suites, 1):
        lines += ["    KTAP version 1", f"    # Subtest: {suite.name}", f"    1..{len(suite.children)}"]
        for place, case in enumerate(suite.children, 1):
            if case.children:
                lines += ["        KTAP version 1", f"        # Subtest: {case.name}"]
                lines += [f"        {result(one, parameter)}" for one, parameter in enumerate(case.children, 1)]
                lines += [f"    # {case.name}: {counts(case.children)}"] if len(case.children) > 1 else []
            lines.append(f"    {result(place, case)}")
        parameters = tuple(one for case in suite.children for one in case.children or (case,))
        lines += [f"# {suite.name}: {counts(suite.children)}"] if len(suite.children) > 1 else []
        lines += [f"# Totals: {counts(parameters)}"] if len(parameters) > 1 else []
        lines.append(result(number, suite))
    return lines


def kunit_suites(verdicts: tuple[str, ...] = ("pass", "fail", "skip")) -> st.SearchStrategy[tuple[Item, ...]]:
    """Suites of cases, some of which have two parameters or more."""
    words = st.sampled_from(["fprobe_test", "kasan", "ext4_inode"])
    parameters = st.one_of(st.just(()), items(1, verdicts, least=2))
    case = st.builds(Item, words, st.sampled_from(verdicts), parameters)
    cases = st.lists(case, min_size=1, max_size=3)
    suites = st.lists(cases, min_size=1, max_size=3)

    def named(drawn: list[list[Item]]) -> tuple[Item, ...]:
        return tuple(
            Item(
                f"suite{number}",
                "pass",
                tuple(Item(f"{case.name}{place}", case.verdict, case.children) for place, case in enumerate(each)),
            )
            for number, each in enumerate(drawn)
        )

    return suites.map(named)


Render = Callable[[tuple[Item, ...]], list[str]]

FLAVOURS: tuple[Render, ...] = (ktap, kselftest, perl, braces)
PLAN_FIRST: tuple[Render, ...] = (ktap, kselftest)

Log = tuple[tuple[Item, ...], list[str]]


def logs(verdicts: tuple[str, ...] = tuple(VERDICTS), flavours: tuple[Render, ...] = FLAVOURS) -> st.SearchStrategy[Log]:
    """A tree, and a log of it in some flavour."""
    plain = st.tuples(items(3, verdicts), st.sampled_from(flavours))
    kunits = st.tuples(kunit_suites(tuple(one for one in ("pass", "fail", "skip") if one in verdicts)), st.just(kunit))
    return st.one_of(plain, kunits).map(lambda drawn: (drawn[0], drawn[1](drawn[0])))
