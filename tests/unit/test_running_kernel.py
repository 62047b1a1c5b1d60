"""The case boot:identity, asked of fake guests."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.guest import GuestGone
from harness.model import Kernel, Outcome
from harness.suites import ALL, identity
from tests.fake_guest import FakePlace, Script, Step, dies, exits, says
from tests.play import Played, a_target, play

OURS, OTHER = "0123456789abcdef0123" * 2, "f" * 40
MODULE = "kernel/samples/fprobe_example.ko"


def kernel(build_ids: tuple[str, ...] = (OURS,), modules: dict[str, str] | None = None) -> Kernel:
    nowhere = Path("nowhere")
    return Kernel(
        arch="x86_64",
        digest="0" * 64,
        directory=nowhere,
        release="6.12.99",
        image=nowhere,
        vmlinux=nowhere,
        modules=nowhere,
        headers=nowhere,
        config=nowhere,
        config_digest="",
        compiler="gcc",
        objects=1,
        seconds=1.0,
        build_ids=build_ids,
        module_ids={MODULE: OURS} if modules is None else modules,
    )


RUNNING = f"{OURS} /sys/kernel/notes\n"
GOOD = f"{RUNNING}{OURS} ./{MODULE}\n"


def ask(directory: Path, answer: str, built: Kernel, *steps: Step) -> tuple[Outcome, str]:
    script = Script(commands={"boot:identity": steps or (says(answer), exits(0))})
    with FakePlace(script).guest(directory) as guest:
        guest.wait_for_agent()
        result = identity.prove(guest, built)
    assert result.id == "boot:identity"
    return result.outcome, result.diagnostic


def test_the_kernel_that_was_built(tmp_path: Path) -> None:
    assert ask(tmp_path, GOOD, kernel()) == (Outcome.PASS, OURS)
    assert ask(tmp_path, RUNNING, kernel(modules={})) == (Outcome.PASS, OURS)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (GOOD.replace(RUNNING, f"{OTHER} /sys/kernel/notes\n"), f"runs the kernel {OTHER}, but {OURS}"),
        (f"{RUNNING}{OTHER} ./{MODULE}\n", f"modules that are missing, from another build, or not part of this one: {MODULE}"),
        (f"{RUNNING}none ./{MODULE}\n", MODULE),
        (RUNNING, MODULE),
        (f"{GOOD}{OURS} ./extra.ko\n", "extra.ko"),
        ("", "reported no build id of its kernel"),
        ("sh: build-id: not found\n", "reported no build id of its kernel"),
        ("none /sys/kernel/notes\n", "reported no build id of its kernel"),
        (f"{OURS[:-1]} /sys/kernel/notes\n", "reported no build id of its kernel"),
        (f"{OURS} /sys/kernel/notes2\n", "reported no build id of its kernel"),
    ],
)
def test_another_kernel_or_another_module(tmp_path: Path, answer: str, why: str) -> None:
    outcome, diagnostic = ask(tmp_path, answer, kernel())
    assert outcome is Outcome.FAIL
    assert why in diagnostic


def test_failure_shows_what_the_guest_answered(tmp_path: Path) -> None:
    script = Script(commands={"boot:identity": (says("none /sys/kernel/notes\n"), exits(0))})
    with FakePlace(script).guest(tmp_path) as guest:
        guest.wait_for_agent()
        result = identity.prove(guest, kernel())
    assert (result.log, result.seconds > 0) == ("none /sys/kernel/notes\n", True)


def test_five_modules_are_all_named(tmp_path: Path) -> None:
    wanted = {f"kernel/{number}.ko": OURS for number in range(5)}
    assert ask(tmp_path, RUNNING, kernel(modules=wanted))[1].endswith(": " + ", ".join(wanted))


def test_many_modules_are_not_all_named(tmp_path: Path) -> None:
    wanted = {f"kernel/{number}.ko": OURS for number in range(8)}
    outcome, diagnostic = ask(tmp_path, RUNNING, kernel(modules=wanted))
    assert outcome is Outcome.FAIL
    assert diagnostic.endswith("kernel/0.ko, kernel/1.ko, kernel/2.ko, kernel/3.ko, kernel/4.ko and 3 more")


def test_a_prebuilt_kernel_is_one_of_those_in_its_image(tmp_path: Path) -> None:
    assert ask(tmp_path, GOOD, kernel((OTHER, OURS)))[0] is Outcome.PASS
    outcome, diagnostic = ask(tmp_path, GOOD, kernel((OTHER, "e" * 40)))
    assert outcome is Outcome.FAIL
    assert f"{OTHER} or {'e' * 40}" in diagnostic


def test_a_prebuilt_kernel_of_which_nothing_is_known(tmp_path: Path) -> None:
    outcome, diagnostic = ask(tmp_path, GOOD, kernel(()))
    assert outcome is Outcome.SKIP
    assert "the image holds no readable build id" in diagnostic
    # Its modules are known all the same.
    assert ask(tmp_path, RUNNING, kernel(()))[0] is Outcome.FAIL


def test_compressed_modules_are_there_but_not_read(tmp_path: Path) -> None:
    wanted = kernel(modules={MODULE: OURS, "b.ko.xz": ""})
    outcome, diagnostic = ask(tmp_path, f"{GOOD}none ./b.ko.xz\n", wanted)
    assert (outcome, diagnostic) == (Outcome.PASS, f"{OURS}; 1 modules are compressed: their build ids were not read")
    outcome, diagnostic = ask(tmp_path, GOOD, wanted)
    assert outcome is Outcome.FAIL
    assert diagnostic.endswith(": b.ko.xz")


def test_a_guest_that_is_gone_before_it_answers(tmp_path: Path) -> None:
    with pytest.raises(GuestGone):
        ask(tmp_path, "", kernel(), dies)


def outcomes(played: Played) -> dict[str, tuple[Outcome, bool]]:
    return {result.id: (result.outcome, result.ran) for result in played.reported}


@pytest.mark.parametrize("boot", [True, False])
def test_nothing_of_a_guest_with_another_kernel_counts(tmp_path: Path, boot: bool) -> None:
    """The case is reported, whether the suite was asked for or not."""
    script = Script(commands={"boot:identity": (says(f"{OTHER} /sys/kernel/notes\n"), exits(0))})
    suites = [*([ALL["boot"]] if boot else []), ALL["command"]]
    played = play(tmp_path, suites, script, target=a_target(commands=("true", "false")))
    assert outcomes(played) == {
        "boot:identity": (Outcome.FAIL, True),
        "command:true": (Outcome.LOST, False),
        "command:false": (Outcome.LOST, False),
    }
    assert len(played.place.boots) == 1
    assert not played.place.asked("command:*")


def test_a_later_boot_with_another_kernel(tmp_path: Path) -> None:
    dying = Script(commands={"samples:*": (dies,)})
    other = Script(commands={"boot:identity": (says(f"{OTHER} /sys/kernel/notes\n"), exits(0))})
    config = {"SAMPLE_FPROBE": "y", "SAMPLE_KPROBES": "y"}
    played = play(tmp_path, [ALL["boot"], ALL["samples"]], dying, other, target=a_target(config=config))
    found = outcomes(played)
    assert found["boot:identity"] == (Outcome.PASS, True)
    assert found["boot:identity of boot 2"] == (Outcome.FAIL, True)
    lost = [name for name, (outcome, _) in found.items() if outcome is Outcome.LOST]
    assert "samples:kprobe_example" in lost
    assert not [name for name, (outcome, _) in found.items() if name.startswith("samples:") and outcome is Outcome.PASS]
    assert len(played.place.boots) == 2
