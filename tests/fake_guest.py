"""A fake guest: a script at the other end of real sockets. It speaks the agent's protocol
(qemu/guest/agent) and QEMU's monitor, so that the harness's own Console, Channel, Guest and Session
run as they do with QEMU. A test writes down as steps what the guest prints and how it ends.

A deadline passes because the script moves the guest's clock past it, never because a machine is slow."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import fnmatch
import hashlib
import json
import socket
import termios
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from harness import arch as archs
from harness.arch import Arch
from harness.cache import Cache
from harness.guest import Accelerator, Boot, Guest, PlaceLost, started
from harness.guest.channel import Question
from harness.guest.qemu import Qemu
from harness.guest.timing import Timing

_LONG = 1e6
"""Seconds: past every deadline."""
_TICK = 0.05
_PIECE = 1200
"""Bytes of a frame's data, as the agent has it."""


Step = Callable[["Machine", Question], None]

BUILD_ID = "0123456789abcdef0123" * 2
"""The build id of the kernel in every fake guest whose script gives no other one."""


class _Ended(Exception):
    """The machine is gone, or was killed."""


# Steps.


def prints(*lines: str) -> Step:
    """Messages of the kernel's, each with its time and caller."""
    return lambda machine, question: machine.kernel(*lines)


def raw(text: str) -> Step:
    """Bytes on the console, just as they are."""
    return lambda machine, question: machine.console_send(text.encode(errors="surrogateescape"))


def says(text: str) -> Step:
    """The command prints this text."""
    return lambda machine, question: machine.say(text)


def garbage(data: bytes) -> Step:
    """Bytes on the command channel that belong to no answer."""
    return lambda machine, question: machine.channel_send(data)


def exits(status: int = 0) -> Step:
    return lambda machine, question: machine.answer(question, status)


def exits_without_fence(status: int = 0) -> Step:
    """The channel answers, but the console prints nothing more."""

    def step(machine: Machine, question: Question) -> None:
        machine.channel_send(f"\n{question.marker} end {status}\n".encode())
        machine.let_time_pass()

    return step


def dies(machine: Machine, question: Question) -> None:
    """QEMU ends."""
    raise _Ended


def hangs(machine: Machine, question: Question) -> None:
    """The guest prints nothing until the deadline."""
    machine.hang()


def stays(machine: Machine, question: Question) -> None:
    """The guest prints nothing, and the clock is not moved: the test must end it."""
    machine.wait()


def agent_dies(machine: Machine, question: Question) -> None:
    """The agent dies, and init starts another one."""
    machine.ready()
    machine.skip_answer = True


def does(action: Callable[[], object]) -> Step:
    """The test's own `action` runs at this moment."""

    def step(machine: Machine, question: Question) -> None:
        action()

    return step


def dropped(count: int) -> Step:
    """The notice of lost messages, without time and caller as in kernel/printk/printk.c."""
    return raw(f"** {count} printk messages dropped **\n")


OOPS = (
    "BUG: kernel NULL pointer dereference, address: 0000000000000008",
    "#PF: supervisor read access in kernel mode",
    "Oops: Oops: 0000 [#1] SMP",
    "CPU: 0 UID: 0 PID: 50 Comm: sh Not tainted 6.12.99 #1",
    "RIP: 0010:made_up_entry+0x42/0x1b0",
    "Call Trace:",
    " made_up_caller+0x12/0x30",
    "---[ end trace 0000000000000000 ]---",
    "Kernel panic - not syncing: Fatal exception",
)
KASAN = (
    "==================================================================",
    "BUG: KASAN: slab-use-after-free in made_up_return+0x5c/0x130",
    "Read of size 8 at addr ffff888001234567 by task sh/50",
    "",
    "CPU: 1 UID: 0 PID: 50 Comm: sh Not tainted 6.12.99 #1",
    "Call Trace:",
    " made_up_return+0x5c/0x130",
    "==================================================================",
)
WARNING = (
    "------------[ cut here ]------------",
    "WARNING: CPU: 0 PID: 50 at kernel/trace/made_up.c:117 made_up_warning+0x42/0x1b0",
    "CPU: 0 UID: 0 PID: 50 Comm: sh Not tainted 6.12.99 #1",
    "Call Trace:",
    " made_up_caller+0x12/0x30",
    "---[ end trace 0000000000000000 ]---",
)


class Script(Struct, frozen=True):
    """The behaviour of one boot. `commands` are steps by a glob of the label; without a match, status 0."""

    boot: tuple[Step, ...] = ()
    """Steps before the agent is ready."""
    ready: bool = True
    commands: Mapping[str, tuple[Step, ...]] = {}
    last: tuple[Step, ...] = ()
    """Steps when QEMU is killed: output that the kernel still had to print."""
    sysrq: tuple[Step, ...] = (prints("sysrq: Show backtrace of all active CPUs"),)
    """Steps when the harness asks for backtraces."""
    nmi: tuple[Step, ...] = ()
    qemu: str = ""
    """If not empty, QEMU prints this and does not start."""
    lost: bool = False
    """The connection to the host breaks when the guest is lost."""


def _unread(line: socket.socket) -> bool:
    """True if the other end has not read all that was sent."""
    with contextlib.suppress(OSError):  # the other end is closed
        return any(fcntl.ioctl(line, termios.TIOCOUTQ, bytes(4)))
    return False


class Machine:
    """One boot of the fake guest: threads at the far ends of the serial lines and of the monitor."""

    def __init__(
        self, script: Script, console: socket.socket, monitor: socket.socket, channel: socket.socket | None, clock: Clock
    ) -> None:
        self._script = script
        self._console = console
        self._monitor = monitor
        self._channel = channel
        self._clock = clock
        self._killed = threading.Event()
        self._stamp = 0
        self._output = b""
        self._sending = threading.Lock()
        self.skip_answer = False
        self.asked: list[Question] = []
        runs = [self._run, self._serve_monitor, *([self._heed_keys] if channel else [])]
        self._threads = [threading.Thread(target=run, daemon=True) for run in runs]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def kill(self) -> None:
        """Kill QEMU: output that was sent already arrives, then the sockets close."""
        if not self._killed.is_set():
            with contextlib.suppress(_Ended, OSError):
                self._do(self._script.last)
            self._killed.set()
        self._close()
        for thread in self._threads:
            if thread.ident is not None and thread is not threading.current_thread():
                thread.join()

    # What steps act with.

    def kernel(self, *lines: str) -> None:
        text = ""
        for line in lines:
            self._stamp += 1
            text += f"[{self._stamp // 1000:5}.{self._stamp % 1000:06}][   T50] {line}\n"
        self.console_send(text.encode())

    def console_send(self, data: bytes) -> None:
        with self._sending:
            self._console.sendall(data)

    def channel_send(self, data: bytes) -> None:
        (self._channel or self._console).sendall(data)

    def say(self, text: str) -> None:
        data = text.encode(errors="surrogateescape")
        if self._channel:
            self.channel_send(data)
        else:
            self._output += data

    def ready(self) -> None:
        if self._channel:
            self.channel_send(b"harness agent ready\n")
        self.kernel("harness: agent ready")

    def answer(self, question: Question, status: int) -> None:
        if self._channel:
            self.channel_send(f"\n{question.marker} end {status}\n".encode())
        else:
            self._send_frames(question, status)
        self.kernel(f"harness: {question.left} end {question.label}")
        self.skip_answer = True

    def hang(self) -> None:
        """Once what was printed is read, move the clock past every deadline; then wait until the machine is killed."""
        while _unread(self._console) and not self._killed.wait(0.001):
            pass
        self._clock.advance(_LONG)
        self.wait()

    def let_time_pass(self) -> None:
        """Print nothing, and move the clock again and again, so that every wait ends, even one that begins later."""
        while not self._killed.wait(_TICK):
            self._clock.advance(_LONG)
        raise _Ended

    def wait(self) -> None:
        if self._channel:
            self._killed.wait()
        else:
            self._heed_keys()
        raise _Ended

    def _heed_keys(self) -> None:
        """Run the SysRq steps for each byte that arrives on the console."""
        with contextlib.suppress(OSError, _Ended):
            while keys := self._console.recv(1 << 10):
                for _ in keys:
                    self._do(self._script.sysrq)

    # Threads.

    def _run(self) -> None:
        nothing = Question("", "", "", "")
        try:
            self._do(self._script.boot, nothing)
            if not self._script.ready:
                self.let_time_pass()
            self.ready()
            for line in self._lines():
                self._take(line)
        except (_Ended, OSError):
            pass
        finally:
            self._close()

    def _take(self, line: str) -> None:
        left, right, label, script = line.split(" ")
        question = Question(left, right, label, base64.b64decode(script).decode())
        self.asked.append(question)
        self._output, self.skip_answer = b"", False
        self.kernel(f"harness: {question.left} begin {question.label}")
        if self._channel:
            self.channel_send(f"\n{question.marker} begin\n".encode())
        self._do(self._steps(question), question)
        if not self.skip_answer:
            self.answer(question, 0)

    def _steps(self, question: Question) -> tuple[Step, ...]:
        commands = {"boot:identity": (says(f"{BUILD_ID} /sys/kernel/notes\n"),), **self._script.commands}
        return next((steps for glob, steps in commands.items() if fnmatch.fnmatchcase(question.label, glob)), ())

    def _do(self, steps: Sequence[Step], question: Question | None = None) -> None:
        for step in steps:
            step(self, question or Question("", "", "", ""))

    def _send_frames(self, question: Question, status: int) -> None:
        pieces = [self._output[start : start + _PIECE] for start in range(0, len(self._output), _PIECE)]
        frames = [(str(number), base64.b64encode(piece).decode()) for number, piece in enumerate(pieces)]
        for number, data in [*frames, (f"end:{status}:{len(pieces)}", "")]:
            text = f"{question.marker}@{number}@{data}"
            self.console_send(f"\n@{text}@{hashlib.md5(text.encode()).hexdigest()}@\n".encode())

    def _lines(self) -> Iterator[str]:
        buffer = b""
        while data := (self._channel or self._console).recv(1 << 16):
            *whole, buffer = (buffer + data).split(b"\n")
            yield from (line.decode() for line in whole)

    def _serve_monitor(self) -> None:
        """QMP: JSON objects, which the client does not put on lines of their own."""
        version = {"qemu": {"major": 9, "minor": 2, "micro": 0}, "package": ""}
        decoder, text = json.JSONDecoder(), ""
        with contextlib.suppress(OSError, _Ended):
            self._send_json({"QMP": {"version": version, "capabilities": []}})
            while data := self._monitor.recv(1 << 16):
                text += data.decode()
                with contextlib.suppress(json.JSONDecodeError):
                    command, end = decoder.raw_decode(text)
                    text = text[end:].lstrip()
                    self._send_json(
                        {"return": self._obey(command["execute"]), **{key: command[key] for key in command if key == "id"}}
                    )

    def _send_json(self, value: object) -> None:
        self._monitor.sendall(json.dumps(value).encode() + b"\r\n")

    def _obey(self, command: str) -> object:
        if command == "inject-nmi":
            self._do(self._script.nmi)
        return "RIP=ffffffff81000042 RFL=00000046\r\n" if command.startswith("human") else {}

    def _close(self) -> None:
        for end in filter(None, (self._console, self._channel, self._monitor)):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


class Clock:
    """Real time plus the seconds that a script has added."""

    def __init__(self) -> None:
        self._added = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self._added

    def advance(self, seconds: float) -> None:
        self._added += seconds


class FakePlace:
    """A host whose guests follow `scripts`, one for each boot. Further boots use the last script again."""

    name = ""

    def __init__(self, *scripts: Script) -> None:
        self._scripts = [*scripts]
        self._lock = threading.Lock()
        self.machines: list[Machine] = []
        self.boots: list[Boot] = []

    def key(self, arch: Arch) -> str:
        return "fake"

    def version(self, arch: Arch) -> str:
        return "QEMU emulator version 9.2.0"

    def accelerator(self, arch: Arch, boot: Boot, cache: Cache, wanted: str) -> Accelerator:
        return Accelerator.KVM

    @contextlib.contextmanager
    def start(self, arch: Arch, accelerator: Accelerator, boot: Boot, log: Path, clock: Clock | None = None) -> Iterator[Qemu]:
        with self._lock:
            script = self._scripts.pop(0) if len(self._scripts) > 1 else self._scripts[0]
            self.boots.append(boot)
        log.write_text(script.qemu)
        with contextlib.ExitStack() as stack:
            pairs = [socket.socketpair() for _ in range(3 if arch.guest.channel else 2)]
            for end in (end for pair in pairs for end in pair):
                stack.enter_context(end)
            (console, far_console), (monitor, far_monitor), *channel = pairs
            near_channel, far_channel = channel[0] if channel else (None, None)
            machine = Machine(script, far_console, far_monitor, far_channel, clock or Clock())
            with self._lock:
                self.machines.append(machine)
            stack.callback(machine.kill)
            if script.qemu:
                machine._close()
            else:
                machine.start()
            yield Qemu(log, console, monitor, near_channel, machine.kill, _breaks if script.lost else lambda: None)

    def asked(self, glob: str = "*") -> list[Question]:
        """The commands that its guests received, in the order of the boots."""
        return [one for machine in self.machines for one in machine.asked if fnmatch.fnmatchcase(one.label, glob)]

    @contextlib.contextmanager
    def guest(
        self,
        directory: Path,
        arch: str = "x86_64",
        boot: Boot | None = None,
        name: str = "console",
        last_words: float = 3.0,
    ) -> Iterator[Guest]:
        """A guest, still booting, made by harness.guest.started. A short `last_words` is for guests that stay silent."""
        clock = Clock()
        timing = Timing(poll=0.02, settle=0.05, last_words=last_words, clock=clock)
        place = _Clocked(self, clock)
        boot = boot or Boot(Path("image"), Path("initramfs"))
        with started(archs.load(arch), Accelerator.KVM, directory, boot, name, place=place, timing=timing) as guest:
            yield guest


class _Clocked:
    """`place`, for one guest with a clock of its own."""

    name = ""

    def __init__(self, place: FakePlace, clock: Clock) -> None:
        self._place = place
        self._clock = clock
        self.key = place.key
        self.version = place.version
        self.accelerator = place.accelerator

    def start(self, arch: Arch, accelerator: Accelerator, boot: Boot, log: Path) -> contextlib.AbstractContextManager[Qemu]:
        return self._place.start(arch, accelerator, boot, log, self._clock)


def _breaks() -> None:
    raise PlaceLost("the way to the host is broken", "")
