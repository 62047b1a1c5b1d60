"""The scripts of claims and measures on a kernel that does not do what was asked: no value, or another one than wanted."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import paths, series
from harness.model import ABSENT, CaseResult, Claim, Measure, Outcome, Position
from tests.guestshell import GuestShell, judge

OURS = series.load("fprobe-on-fgraph")
CLAIMS = {claim.case: claim for claim in OURS.claims}
MEASURES = {measure.case: measure for measure in OURS.measures}


def script(text: str) -> Claim:
    return Claim("a script", "it prints a value", text, patched="ok", base="ok")


def claim(number: str) -> Claim:
    return next(entry for case, entry in CLAIMS.items() if case.startswith(number))


@pytest.mark.parametrize(
    "text",
    [
        "value ok",
        "value_of echo ok",
        "echo -n; value ok; echo more",
        "count nothing trace; value ok",
        "echo entries >trace; expect_hits 1 entries; value ok",
        "unregistered vfs_read; value ok",
        "enable claims; value ok",
    ],
)
def test_script_that_goes_well_has_its_value(tmp_path: Path, text: str) -> None:
    result = judge(script(text), GuestShell(tmp_path))
    assert result.outcome is Outcome.PASS, result.log


@pytest.mark.parametrize(
    "text",
    [
        "false; value ok",
        "false | true; value ok",
        "value ok; false",
        "value ok | false",
        'value "ok$not_set"',
        "echo 1 >events/nowhere/enable; value ok",
        "grep -q ok trace; value ok",
        "value_of false",
        "text() { echo ok; false; }; value_of text",
        "text() { false; echo ok; }; value_of text",
        "text() { false | echo ok; }; value_of text",
        'value ""',
        'value "$(printf "ok\\nmore")"',
        "value ok; value ok",
        "value $((1 / 0)); value ok",
        "count ok nowhere; value ok",
        "lines=$(count ok nowhere); value ok",
        "expect_hits 1 ok; value ok",
        "echo entries >trace; expect_hits 2 entries; value ok",
        "expect_hits 1 entries nowhere; value ok",
        "registered vfs_read; value ok",
        "echo 'vfs_read (1)' >enabled_functions; unregistered vfs_read; value ok",
        "unregistered vfs_read nowhere; rm enabled_functions; unregistered vfs_read; value ok",
        "rm -r events/claims; enable claims; value ok",
        "module twice >/dev/null; value ok",
    ],
)
def test_script_of_which_anything_fails_has_none(tmp_path: Path, text: str) -> None:
    result = judge(script(text), GuestShell(tmp_path))
    assert result.outcome is Outcome.FAIL
    assert result.diagnostic.startswith("seen nothing"), result.log


@pytest.mark.parametrize(
    "files", [{"dynamic_events": "f:old/event vfs_read\n"}, {"current_tracer": "function\n"}, {"instances/old/trace": ""}]
)
def test_what_is_left_from_before_is_no_beginning(tmp_path: Path, files: dict[str, str]) -> None:
    """The folder of the test, unlike tracefs, keeps what is written to it: so nothing of this can be removed."""
    stubborn = "clean() { :; }\n"
    shell = GuestShell(tmp_path, {name: text for name, text in files.items() if not name.startswith("instances")})
    for name in files:
        (tmp_path / "tracing" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tracing" / name).write_text(files[name])
    source = tmp_path / "claims"
    source.write_text(source.read_text().replace("clean >/dev/null", f"{stubborn}clean >/dev/null", 1))
    result = judge(script("value ok"), shell)
    assert result.outcome is Outcome.FAIL
    assert "left over from before" in result.log


NOTHING_WORKS: dict[str, Callable[[Path], GuestShell]] = {
    "every command does nothing": lambda folder: GuestShell(folder),
    "no test of a module writes a value": lambda folder: GuestShell(
        folder,
        parameters={
            f"{module}/{file}": "" for module in ("fprobe_claims", "fprobe_bench") for file in ("test", "hold", "called")
        },
        prelude="leftovers() { :; }",
    ),
    "no program runs": lambda folder: GuestShell(
        folder, programs=dict.fromkeys(("modprobe", "kprobe-multi", "kprobe-attach", "perf-sample"), "exit 1")
    ),
}


@pytest.mark.parametrize("how", NOTHING_WORKS)
@pytest.mark.parametrize("entry", [*OURS.claims, *OURS.measures], ids=lambda entry: entry.case)
def test_nothing_passes_where_nothing_works(tmp_path: Path, entry: Claim | Measure, how: str) -> None:
    """Every file is there and empty, or no command does anything: the kernel never answers, so no claim is true."""
    shell = NOTHING_WORKS[how](tmp_path / "guest")
    for position in (Position.WHOLE, Position.BASE):
        result = judge(entry, shell, position)
        skipped = position is Position.BASE and isinstance(entry, Claim) and entry.not_on_base
        assert result.outcome is (Outcome.SKIP if skipped else Outcome.FAIL), result.log
        assert ABSENT not in result.diagnostic.partition(";")[0]


FUNCTIONS = "".join(f"t{number:04}\n" for number in range(2000))
WEIGHED = """
allocated() {{ "$@"; eval "echo \\$${{2}}_takes"; }}
wide1_takes={first} wide2_takes={second}
cat() {{
	case "$1" in
	*/fprobe_claims/parameters/test)
		case "$(command cat "$1")" in
		{which}) echo "{refused}" ;;
		wide*) echo 0 ;;
		narrow) echo "{gone}" ;;
		esac
		;;
	*) command cat "$@" ;;
	esac
}}
echo "{probed}" >/dev/null
unregistered() {{ sed 's/$/ (1)/' {probed} >enabled_functions; }}
"""


def memory(
    folder: Path,
    first: int = 400_000,
    second: int = 400_000,
    refused: str = "0",
    probed: str = "",
    gone: str = "0, 0",
    which: str = "wide*",
) -> CaseResult:
    """Claim 14 on a kernel whose second exit probe takes `second` bytes on 2,000 functions."""
    prelude = WEIGHED.format(
        first=first, second=second, refused=refused, which=which, gone=gone, probed=probed or "available_filter_functions"
    )
    shell = GuestShell(folder, {"available_filter_functions": FUNCTIONS}, prelude, parameters={"fprobe_claims/test": ""})
    (folder / "module/fprobe_claims").rename(folder / "later")
    source = folder / "claims"
    source.write_text(source.read_text() + f"\nmv {folder}/later {folder}/module/fprobe_claims\n")
    return judge(claim("14"), shell)


def test_memory_is_that_of_probes_that_are_there(tmp_path: Path) -> None:
    assert memory(tmp_path / "good").outcome is Outcome.PASS
    assert "over 450" in memory(tmp_path / "fat", second=1_000_000).diagnostic
    for name, result in {
        "refused": memory(tmp_path / "refused", 0, 0, "-22"),
        "refused, though something was taken": memory(tmp_path / "refused-late", refused="-12"),
        "only the first refused": memory(tmp_path / "refused-1", refused="-12", which="wide1"),
        "only the second refused": memory(tmp_path / "refused-2", refused="-12", which="wide2"),
        "nothing taken": memory(tmp_path / "nothing", second=0),
        "nothing taken by the first": memory(tmp_path / "first", first=0),
        "on no function": memory(tmp_path / "none", probed="/dev/null"),
        "not removed": memory(tmp_path / "kept", gone="0, -22"),
    }.items():
        assert result.outcome is Outcome.FAIL, name
        assert result.diagnostic.startswith("seen nothing"), name


def measured(folder: Path, case: str, events: int, calls: int = 80_000, figure: str = "500") -> CaseResult:
    """A measure whose calls write so many events to the trace buffer; most of them are overwritten by later ones."""
    prelude = f"""
leftovers() {{ :; }}
bench() {{ echo {figure}; printf 'entries: 10\\noverrun: %d\\ncommit overrun: 7\\n' {events - 10} >per_cpu/cpu0/stats; }}
"""
    shell = GuestShell(folder, prelude=prelude, parameters={"fprobe_bench/called": f"{calls}\n"})
    (folder / "module/fprobe_bench").rename(folder / "later")
    source = folder / "claims"
    source.write_text(source.read_text() + f"\nmv {folder}/later {folder}/module/fprobe_bench\n")
    return judge(MEASURES[case], shell, Position.BASE)


@pytest.mark.parametrize(
    ("case", "each"), [("fprobe event", 1), ("fprobe return event", 1), ("function_graph", 2), ("function_graph and exit", 2)]
)
def test_trace_event_that_did_not_fire_has_no_cost(tmp_path: Path, case: str, each: int) -> None:
    result = measured(tmp_path / "all", case, each * 80_000)
    assert (result.outcome, result.value) == (Outcome.PASS, 500), result.log
    for events in (10, each * 80_000 - 1, each * 40_000, each * 80_000 + 1):
        result = measured(tmp_path / str(events), case, events)
        assert (result.outcome, result.value) == (Outcome.FAIL, None)
        assert f"not {each} for each" in result.log
    assert measured(tmp_path / "uncalled", case, 10, calls=0).outcome is Outcome.FAIL
    assert measured(tmp_path / "unsaid", case, each * 80_000, figure="").outcome is Outcome.FAIL


@pytest.mark.parametrize("case", ["kprobe.multi", "kretprobe.multi"])
@pytest.mark.parametrize(
    ("program", "outcome"),
    [
        ('cat >/dev/null; shift; "$@"; "$@"; echo "runs: 80000"', Outcome.PASS),
        ('cat >/dev/null; shift; "$@"; "$@"; echo "runs: 0"', Outcome.FAIL),
        ('cat >/dev/null; shift; "$@"; "$@"; echo "runs: 79999"', Outcome.FAIL),
        ('cat >/dev/null; shift; "$@"; "$@"', Outcome.FAIL),
        ('cat >/dev/null; shift; "$@"; "$@"; echo "runs: 80000"; exit 1', Outcome.FAIL),
        ("cat >/dev/null; echo 'kprobe.multi: error 95'; exit 1", Outcome.FAIL),
    ],
)
def test_bpf_program_that_did_not_run_has_no_cost(tmp_path: Path, case: str, program: str, outcome: Outcome) -> None:
    """kprobe-attach runs its command twice; the module of the test answers whatever is written to it."""
    attached = "seq 100 199 | sed 's/^1/bench_many_0/; s/$/ (1)/' >enabled_functions"
    prelude = "leftovers() { :; }\nunregistered() { :; }\n"
    parameters = {"fprobe_bench/called": "80000\n", "fprobe_bench/test": ""}
    shell = GuestShell(tmp_path, prelude=prelude + attached, parameters=parameters, programs={"kprobe-attach": program})
    (tmp_path / "module/fprobe_bench").rename(tmp_path / "later")
    source = tmp_path / "claims"
    source.write_text(source.read_text() + f"\nmv {tmp_path}/later {tmp_path}/module/fprobe_bench\n")
    # What the fake module reads as is what was written: the figure.
    measure = Measure("bpf", "as bundled", MEASURES[case].script.replace("many", "100"), needs=("FPROBE",))
    result = judge(measure, shell)
    assert result.outcome is outcome, result.log


def test_memory_of_a_probe_that_is_not_held(tmp_path: Path) -> None:
    prelude = "leftovers() { :; }\nhold() { :; }\nallocated() { echo 976; }\n"
    for number, held in enumerate(("", "bench_many_000 (1)\n", "bench_many_000 (1)\nbench_many_001 (1)\n")):
        shell = GuestShell(tmp_path / str(number), {"enabled_functions": held}, prelude)
        result = judge(MEASURES["memory, 1 function"], shell, Position.BASE)
        assert result.outcome is (Outcome.PASS if number == 1 else Outcome.FAIL), result.log


TRACE = "# entries-in-buffer/entries-written: {}/{}   #P:1\n{}"
KMALLOC = "  sh-1 [000] ..... 1.0: kmalloc: call_site=a ptr=0001 bytes_req=90 bytes_alloc=96 gfp_flags=GFP_KERNEL\n"


@pytest.mark.parametrize(
    ("trace", "expected"),
    [
        (TRACE.format(1, 1, KMALLOC), "96"),
        (TRACE.format(2, 2, KMALLOC + "  sh-1 [000] ..... 1.0: kfree: call_site=a ptr=0001\n"), "0"),
        (TRACE.format(1, 2, KMALLOC), ""),
        (TRACE.format(0, 0, ""), ""),
        (KMALLOC, ""),
        ("", ""),
    ],
)
def test_allocations_are_counted_in_a_whole_trace(tmp_path: Path, trace: str, expected: str) -> None:
    (tmp_path / "kernel").write_text(trace)
    shell = GuestShell(tmp_path, prelude=f"work() {{ cp {tmp_path}/kernel trace; }}")
    result = judge(script("value_of allocated work"), shell)
    assert f"seen '{expected}'" in result.diagnostic if expected else "seen nothing" in result.diagnostic, result.log


def functions(text: str) -> dict[str, list[str]]:
    """The functions of a script and the commands of each."""
    found = re.findall(r"^(\w+)\(\) \{.*\n((?:.*\n)*?)\}", text, re.MULTILINE)
    return {name: [line.strip() for line in body.splitlines() if line.strip()] for name, body in found}


def test_what_runs_in_a_substitution_is_strict_again() -> None:
    """In busybox's shell, a command substitution continues after a command that fails, unless it begins with set -e."""
    helpers = functions((paths.GUEST / "claims").read_text())
    checked = set()
    entries: list[Claim | Measure] = [*OURS.claims, *OURS.measures, script((paths.GUEST / "claims").read_text())]
    for entry in entries:
        known = helpers | functions(entry.script)
        for name in re.findall(r"\$\((?:\w+=\S+ )?(\w+)", entry.script):
            if len(known.get(name, ())) > 1:
                checked.add(name)
                assert known[name][0] == "set -e", (entry.case, name)
    assert {"allocated", "sampled", "least", "bench", "called", "written", "count", "leftovers"} <= checked
    assert {"module", "held_memory", "recorded"} <= {name for name, lines in helpers.items() if lines[0] == "set -e"}


@pytest.mark.parametrize(("stays", "seen"), [(False, "0 left of 64"), (True, "64 left of 64")])
def test_what_probes_leave_behind_is_counted(tmp_path: Path, stays: bool, seen: str) -> None:
    """Claim 18, on a kernel that keeps a function enabled once its probes are gone, and on one that does not."""
    prelude = f"""
leftovers() {{ :; }}
grep() {{ [ "$1" = -q ] || command grep "$@"; }}
expect_hits() {{ [ {int(stays)} = 0 ] || command echo 'vfs_read (1)' >enabled_functions; }}
"""
    result = judge(claim("18"), GuestShell(tmp_path, prelude=prelude))
    assert f"seen '{seen}'" in result.diagnostic, result.log
    assert result.outcome is (Outcome.FAIL if stays else Outcome.PASS)
