"""The grammar of single KTAP and TAP lines. `taptree` combines the lines.

Documentation/dev-tools/ktap.rst; testanything.org/tap-version-13-specification.html and -14-."""

from __future__ import annotations

import functools
import re

from msgspec import Struct

from harness.model import Outcome

_NEST = r"(?P<nest>(?:# |  |\t)*+ ?)"
VERSION = re.compile(_NEST + r"K?TAP version \d+\s*$")
PLAN = re.compile(_NEST + r"1\.\.(?P<count>\d{1,9})\s*+(?:#\s*+(?P<skip>SKIP\w*+:?)?\s*+(?P<reason>.*))?$", re.IGNORECASE)
RESULT = re.compile(
    _NEST + r"(?P<not>not +)?ok\b(?(not)[:;,.]?)"
    r"(?:[ \t]+(?P<number>\d{1,9})(?![^ \t]))?(?P<dash>[ \t]+-(?![^ \t]))?(?:[ \t]+(?P<rest>.*))?$"
)
SUBTEST = re.compile(r"(?P<nest>(?:  |\t)*+(?:# (?=# ))*)# Subtest: (?P<name>.*)$")
TOTALS = re.compile(
    r"(?P<nest>(?:  |\t)*+(?:# (?=# ))*)# (?P<name>[^\s:]+(?: [^\s:]+)*): pass:(?P<passed>\d{1,9}) fail:(?P<failed>\d{1,9})"
    r"(?: xfail:(?P<xfailed>\d{1,9}))?(?: xpass:(?P<xpassed>\d{1,9}))? skip:(?P<skipped>\d{1,9})"
    r"(?: error:(?P<errors>\d{1,9}))?(?: total:(?P<total>\d{1,9}))?\s*$"
)
CLOSING_BRACE = re.compile(_NEST + r"\}\s*$")

_DIRECTIVE = re.compile(r"(?:^|\s)#\s*+(?P<word>SKIP\w*+|TODO|XFAIL|UNRESOLVED|TIMEOUT)\b", re.IGNORECASE)
_REMARK = re.compile(r"(?:^|\s)#\s*+(?P<text>[^#]*+)$")

WIDEST = 4000
"""Characters of a line that are parsed."""
_DEEPEST = 128
"""Columns: a line that is indented further counts as indented this far."""

_DIRECTIVES = {
    "SKIP": Outcome.SKIP,
    "XFAIL": Outcome.XFAIL,
    "TODO": Outcome.XFAIL,
    "UNRESOLVED": Outcome.UNRESOLVED,
    "TIMEOUT": Outcome.TIMEOUT,
}


class Totals(Struct, frozen=True):
    """The counts that a test prints of its own results.

    KUnit prints them with `total:`, before the result of the parent. kselftest.h prints them without, after the results."""

    name: str
    passed: int
    failed: int
    skipped: int
    xfailed: int
    total: int
    kunit: bool


@functools.lru_cache(maxsize=256)
def depth(nest: str) -> int:
    """The column at which a line begins, behind its indentation and kselftest's `# `."""
    return min(_DEEPEST, len(nest.expandtabs(4)))


def verdict(rest: str, passed: bool) -> tuple[str, Outcome, str]:
    """Name, outcome and reason, from the text after `ok 1 ` or `not ok 1 `.

    The last directive counts: a name may hold a `#`, and so may a reason."""
    outcome = Outcome.PASS if passed else Outcome.FAIL
    if "#" not in rest:
        return rest.strip(), outcome, ""
    for match in reversed(list(_DIRECTIVE.finditer(rest))):
        directive = _outcome_of(match["word"], passed)
        if directive is not None:
            return rest[: match.start()].strip(), directive, rest[match.end() :].lstrip(": ").strip()
    if remark := _REMARK.search(rest):
        return rest[: remark.start()].strip(), outcome, remark["text"].strip()
    return rest.strip(), outcome, ""


def _outcome_of(word: str, passed: bool) -> Outcome | None:
    """The outcome that a directive asks for; None if the word is no directive on this result.

    `# timeout` in small letters is a remark of tests about timeouts. `# Skipped` is the SKIP of older Perl: it turns a
    pass into a skip, but leaves a failure red. A TODO that passes is a pass."""
    upper = word.upper()
    if word == "timeout" or (upper == "TODO" and passed):
        return None
    if upper not in _DIRECTIVES and not passed:
        return None
    return _DIRECTIVES.get(upper, Outcome.SKIP)


def totals(match: re.Match[str]) -> Totals:
    """The counts in a match of TOTALS. An error is a failure; XPASS is a pass."""
    count = {key: int(match[key] or 0) for key in ("passed", "failed", "xfailed", "xpassed", "skipped", "errors")}
    passed, failed = count["passed"] + count["xpassed"], count["failed"] + count["errors"]
    added = passed + failed + count["skipped"] + count["xfailed"]
    kunit = match["total"] is not None
    total = int(match["total"]) if kunit else added
    return Totals(match["name"], passed, failed, count["skipped"], count["xfailed"], total, kunit)
