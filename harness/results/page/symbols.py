"""Outcomes at a glance."""

from __future__ import annotations

from harness.model import Outcome

SYMBOLS = {
    Outcome.PASS: "✓",
    Outcome.FAIL: "✗",
    Outcome.SKIP: "-",
    Outcome.XFAIL: "⊖",
    Outcome.UNRESOLVED: "?",
    Outcome.CRASH: "✸",
    Outcome.TIMEOUT: "◷",
    Outcome.LOST: "∅",
    Outcome.ERROR: "!",
    Outcome.FLAKY: "≈",
}
"""Nobody has to tell colours apart."""

WORST = (Outcome.CRASH, Outcome.ERROR, Outcome.TIMEOUT, Outcome.LOST, Outcome.FAIL, Outcome.UNRESOLVED, Outcome.FLAKY)
"""Red ones, the worst first."""
