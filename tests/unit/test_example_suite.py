"""The suite that docs/adding.md shows runs as it stands there, in fake guests."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from harness.suites.base import Suite
from tests import docs
from tests.fake_guest import OOPS, Script, dies, exits, prints, says
from tests.play import play

_PYTHON = re.compile(r"^```python\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)


def example() -> str:
    (found,) = _PYTHON.finditer((docs.ROOT / "docs" / "adding.md").read_text())
    return found["code"]


def suite() -> Suite:
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(example(), "docs/adding.md", "exec"), names)
    made = names["TracersSuite"]()
    assert isinstance(made, Suite)
    return made


def test_it_is_short() -> None:
    body = [line for line in example().splitlines() if line and not line.startswith("from ")]
    assert len(body) <= 15


def test_each_exit_status_decides(tmp_path: Path) -> None:
    refused = (says("sh: write error: Invalid argument\n"), exits(1))
    played = play(tmp_path, [suite()], Script(commands={"tracers:function_graph": refused}))
    assert played.outcomes("tracers") == {"function": "pass", "function_graph": "fail"}
    assert "Invalid argument" in played["tracers:function_graph"].diagnostic
    (asked,) = played.place.asked("tracers:function_graph")
    assert asked.script == "echo function_graph >/sys/kernel/tracing/current_tracer"


def test_a_crash_costs_one_case(tmp_path: Path) -> None:
    crash = Script(commands={"tracers:function": (prints(*OOPS), dies)})
    played = play(tmp_path, [suite()], crash, Script())
    assert played.outcomes("tracers") == {"function": "crash", "function_graph": "pass"}
    assert len(played.place.boots) == 2
