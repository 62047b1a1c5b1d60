"""One value out of a guest: what the scripts of claims and of measures print as `value: ...`, behind qemu/guest/claims."""

from __future__ import annotations

from msgspec import Struct

from harness.guest import Guest
from harness.suites.base import Target

_PREAMBLE = ". /harness/claims\n"
_VALUE = "value:"


class Value(Struct, frozen=True):
    text: str
    """Empty if there was none."""
    why: str = ""
    """There was none."""
    log: str = ""
    seconds: float = 0.0


def ask(guest: Guest, target: Target, script: str, label: str, seconds: float) -> Value:
    """Run the script. No value, several, or another exit status than 0 is none."""
    answer = guest.run(_PREAMBLE + script, label=label, seconds=seconds)
    lines = answer.output.splitlines()
    values = [line.removeprefix(_VALUE).strip() for line in lines if line.startswith(_VALUE)]
    if answer.status == 0 and len(values) == 1 and values[0]:
        return Value(values[0], "", answer.output, answer.seconds)
    said = [line for line in lines if line.strip()]
    why = f"{len(values)} values, exit status {answer.status}: {said[-1] if said else 'no word'}"
    if target.kernel.modules_error:
        why += f"; the harness's modules are not there: {target.kernel.modules_error}"
    return Value("", why, answer.output, answer.seconds)


def lacking(target: Target, needs: tuple[str, ...]) -> str:
    """The symbols that the kernel lacks, for people."""
    return " and ".join(f"CONFIG_{symbol}" for symbol in needs if not target.has(symbol))
