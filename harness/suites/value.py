"""Get one value from a guest. The scripts of claims and measures print it as `value: ...`. Each script first sources
qemu/guest/claims, which makes the shell strict and defines helper functions."""

from __future__ import annotations

import re

from msgspec import Struct

from harness.guest import Guest
from harness.suites.base import Target

_PREAMBLE = ". /harness/claims\n"
_VALUE = "value:"
_NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,9})?")


class Value(Struct, frozen=True):
    text: str
    """Empty if there was none."""
    why: str = ""
    """The reason why there is no value; empty if there is one."""
    log: str = ""
    seconds: float = 0.0


def ask(guest: Guest, target: Target, script: str, label: str, seconds: float) -> Value:
    """Run the script in the guest. It gives a value if it prints exactly one and ends with exit status 0."""
    answer = guest.run(_PREAMBLE + script, label=label, seconds=seconds)
    lines = answer.output.splitlines()
    values = [line.removeprefix(_VALUE).strip() for line in lines if line.startswith(_VALUE)]
    if answer.status == 0 and len(values) == 1 and values[0]:
        return Value(values[0], "", answer.output, answer.seconds)
    printed = [line for line in lines if line.strip()]
    why = f"{len(values)} values, exit status {answer.status}: {printed[-1] if printed else 'nothing was printed'}"
    if target.kernel.modules_error:
        why += f"; the harness's modules are not there: {target.kernel.modules_error}"
    return Value("", why, answer.output, answer.seconds)


def number(text: str) -> float | None:
    """A decimal number as the guest's programs print it, or None. Python's own float() takes more: nan, 1_000, 1e3."""
    return float(text) if _NUMBER.fullmatch(text) else None


def lacking(target: Target, needs: tuple[str, ...]) -> str:
    """The symbols among `needs` that the kernel lacks, for a message; empty if it has all of them."""
    return " and ".join(f"CONFIG_{symbol}" for symbol in needs if not target.has(symbol))
