"""report.html: a run on one page that needs nothing else, neither network nor JavaScript. What a guest printed is text there,
whatever it looks like: the template escapes all of it, and the page forbids any script but its own."""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from pathlib import Path

import jinja2
from markupsafe import Markup

from harness.logs.lines import clean_text
from harness.model import Outcome
from harness.results import rundir
from harness.results.journal import RunReport
from harness.results.page import view
from harness.results.page.symbols import SYMBOLS

_HERE = Path(__file__).parent


def render(report: RunReport) -> str:
    style, script = ((_HERE / name).read_text(encoding="utf-8") for name in ("style.css", "script.js"))
    return (
        _environment()
        .get_template("template.html")
        .render(
            page=view.page(report),
            outcomes=[(outcome, SYMBOLS[outcome]) for outcome in Outcome],
            style=Markup(style),
            script=Markup(script),
            hashes={"style": _hash(style), "script": _hash(script)},
        )
    )


def write(report: RunReport, path: Path) -> None:
    rundir.replace(path, render(report).encode())


@functools.cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_readable,
    )


_BIDI = re.compile(r"[\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""What makes text around it run the other way."""


def _readable(value: object) -> object:
    return _BIDI.sub("", clean_text(value)) if isinstance(value, str) and not isinstance(value, Markup) else value


def _hash(text: str) -> str:
    """As a Content-Security-Policy names an inline text."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
