"""A person at the guest's console: what is typed goes there, what it prints is shown."""

from __future__ import annotations

import contextlib
import os
import select
import sys
import termios
import tty
from collections.abc import Iterator

from harness.guest.guest import Guest

_ESCAPE = 0x01
_POLL_SECONDS = 0.2

HELP = "Ctrl-A x ends the guest, Ctrl-A b sends a break (then a SysRq key), Ctrl-A a sends Ctrl-A; `exit` ends it as well."


def show(data: bytes) -> None:
    """Write what a console prints to our standard output, as it comes."""
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def size() -> os.terminal_size:
    """Of the terminal itself: COLUMNS and LINES may be those of another one."""
    try:
        return os.get_terminal_size(sys.stdin.fileno())
    except OSError:
        return os.terminal_size((80, 24))


def converse(guest: Guest) -> None:
    """Until the guest ends, or the person ends it. Whatever happens, the terminal is left as it was."""
    stdin = sys.stdin.fileno()
    with _raw(stdin):
        keys = Keys()
        listening = [stdin]
        while not guest.console.closed.wait(0 if listening else _POLL_SECONDS):
            if guest.console.saw("harness: shell"):
                return
            if not select.select(listening, [], [], _POLL_SECONDS)[0]:
                continue
            typed = os.read(stdin, 4096)
            if not typed:
                listening = []  # a script has said all it had to say; the guest may still answer
            for action, data in keys.read(typed):
                if action == "end":
                    return
                with contextlib.suppress(OSError):
                    guest.sysrq() if action == "break" else guest.console.send(data)


class Keys:
    """Tells what is for the guest from what is for us. An escape may end one read and be answered in the next."""

    def __init__(self) -> None:
        self._escaped = False

    def read(self, typed: bytes) -> Iterator[tuple[str, bytes]]:
        """(`send`, bytes), (`break`, nothing) and (`end`, nothing)."""
        for key in typed:
            if self._escaped:
                self._escaped = False
                if key == ord("x"):
                    yield "end", b""
                elif key == ord("b"):
                    yield "break", b""
                elif key in (_ESCAPE, ord("a")):
                    yield "send", bytes([_ESCAPE])
                else:
                    yield "send", bytes([_ESCAPE, key])
            elif key == _ESCAPE:
                self._escaped = True
            else:
                yield "send", bytes([key])


@contextlib.contextmanager
def _raw(stdin: int) -> Iterator[None]:
    if not os.isatty(stdin):
        yield
        return
    before = termios.tcgetattr(stdin)
    try:
        tty.setraw(stdin)
        yield
    finally:
        termios.tcsetattr(stdin, termios.TCSADRAIN, before)
