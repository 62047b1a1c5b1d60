"""Case `boot:identity`: the running kernel and the modules beside it are those that were built, by their build ids."""

from __future__ import annotations

import re

from harness.guest import Guest
from harness.model import CaseResult, Kernel, Outcome

NAME = "identity"
_NOTES = "/sys/kernel/notes"
_SCRIPT = f"""\
build-id {_NOTES}
cd /lib/modules/"$(uname -r)" 2>/dev/null || exit 0
find . -name '*.ko' -o -name '*.ko.[gxz]*' | sort | xargs -r build-id
"""
_LINE = re.compile(r"(?P<id>[0-9a-f]{40}|none) (?P<file>\S.*)")
_SECONDS = 20.0
_SECONDS_OF_MODULE = 0.05
_MOST = 5
"""Maximum number of modules that a diagnostic names."""


def prove(guest: Guest, kernel: Kernel) -> CaseResult:
    """The result of the case. Skipped, with the reason, if the kernel's build id is not known. Raises GuestGone."""
    seconds = _SECONDS + _SECONDS_OF_MODULE * len(kernel.module_ids)
    answer = guest.run(_SCRIPT, label=f"boot:{NAME}", seconds=seconds)
    lines = filter(None, map(_LINE.fullmatch, answer.output.splitlines()))
    seen = {match["file"].removeprefix("./"): match["id"] for match in lines}
    running = seen.pop(_NOTES, "")
    unread = [name for name in seen if not name.endswith(".ko")]
    seen.update(dict.fromkeys(unread, ""))
    if running in ("", "none"):
        why = f"the guest reported no build id of its kernel (exit status {answer.status})"
    else:
        why = _other_kernel(kernel, running) or _other_modules(kernel, seen)
    if why:
        return CaseResult("boot", NAME, Outcome.FAIL, answer.seconds, why, answer.output)
    if not kernel.build_ids:
        why = f"not proved: the guest runs the kernel {running}, but the image holds no readable build id to compare with"
        return CaseResult("boot", NAME, Outcome.SKIP, answer.seconds, why)
    more = f"; {len(unread)} modules are compressed: their build ids were not read" if unread else ""
    return CaseResult("boot", NAME, Outcome.PASS, answer.seconds, running + more)


def _other_kernel(kernel: Kernel, running: str) -> str:
    if not kernel.build_ids or running in kernel.build_ids:
        return ""
    return f"the guest runs the kernel {running}, but {' or '.join(kernel.build_ids)} is the one to be tested"


def _other_modules(kernel: Kernel, seen: dict[str, str]) -> str:
    wrong = sorted(seen.items() ^ kernel.module_ids.items())
    names = list(dict.fromkeys(name for name, _ in wrong))
    if not names:
        return ""
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return f"modules that are missing, from another build, or not part of this one: {', '.join(names[:_MOST])}{more}"
