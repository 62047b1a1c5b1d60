"""A booted guest: runs commands over its command channel, and knows what its console said meanwhile."""

from __future__ import annotations

import contextlib
import fnmatch
import itertools
import re
import secrets
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from harness.arch import Arch
from harness.errors import InfrastructureError
from harness.guest import qemu
from harness.guest.channel import Broken, Channel, Frames, Line, Question
from harness.guest.console import Console
from harness.guest.host import Host
from harness.guest.place import HERE, Place
from harness.guest.qemu import Accelerator, Boot
from harness.guest.timing import TIMING, Timing
from harness.logs.splat import Splat

_BACKTRACES = ("l", "w")
"""SysRq keys: all active CPUs, and tasks that no signal wakes."""
_PING_SECONDS = 10.0
_LONGEST_BACKTRACES = 1000
"""Lines."""

T = TypeVar("T")


class GuestGone(Exception):
    """The guest can take no more commands. `console` is the last of what it said, `splats` what it complained of by itself,
    `gaps` why lines of its console may be missing."""

    def __init__(self, message: str, console: str, splats: Sequence[Splat] = (), gaps: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.console = console
        self.splats = splats
        self.gaps = gaps


class GuestLost(GuestGone):
    """It died or stopped answering."""


class GuestTimeout(GuestGone):
    """It did not answer before the deadline."""


class CommandResult(Struct, frozen=True):
    status: int
    output: str
    seconds: float
    console: tuple[int, int]
    """Offsets of console.log between which the command ran."""


class Guest:
    """Made by `started`."""

    def __init__(
        self,
        machine: qemu.Qemu,
        console: Console,
        arch: Arch,
        patience: int,
        host: Host | None,
        timing: Timing = TIMING,
    ) -> None:
        """`patience` is what every deadline is multiplied by; `host` learns from a good boot."""
        self.console = console
        self.patience = patience
        self.boot_seconds = 0.0
        self.booted_at = 0
        """Offset of console.log at which the agent was reached."""
        self.boot_log: list[str] = []
        """The console's lines until then."""
        self.misboot = ""
        """What the kernel said if the machine went wrong, and not the kernel."""
        self._machine = machine
        self._sysrq = arch.guest.sysrq
        self._sign = arch.guest.misboot
        self._follows = tuple(entry.title for entry in arch.guest.misboot_splats)
        self._host = host
        self._timing = timing
        self._channel: Channel = Line(machine.channel.fileno()) if machine.channel else Frames(console)

    def wait_for_agent(self) -> None:
        """Raises GuestGone if the kernel dies or the deadline passes first, InfrastructureError if QEMU did not even start."""
        start = self._timing.clock()
        try:
            self._wait(self._channel.ready, start + self._timing.boot * self.patience)
        except GuestLost:
            if not self.console.spoke:
                why = self._machine.log.read_text(errors="replace").strip()
                raise InfrastructureError(f"QEMU ended before the guest said anything: {why[-500:]}", "see qemu.cmd") from None
            raise
        self.boot_seconds = self._timing.clock() - start
        self.ping("boot-end")
        self.booted_at = self.console.offset
        self.boot_log = list(self.console.read(self.console.begin, self.booted_at))
        self.misboot = next((line for line in self.boot_log if self._sign and self._sign in line), "")
        if self._host and not self.misboot:
            self._host.learn(self.boot_log)

    def ping(self, label: str) -> None:
        """Run a command that does nothing. When it has ended, everything printed before it has been
        read. Raises GuestGone, also if the agent cannot run it."""
        answer = self.run("true", label, _PING_SECONDS)
        if answer.status:
            raise self._lost(f"the agent cannot run anything: status {answer.status}: {answer.output.strip()}")

    def run(self, script: str, label: str, seconds: float) -> CommandResult:
        """Run a shell script; `seconds` is its deadline before the guest's patience. Its stderr is folded in.

        Raises GuestTimeout, after asking the kernel what it is doing, and GuestLost if no exit status comes back."""
        question = Question(secrets.token_hex(6), secrets.token_hex(6), re.sub(r"\s", "_", label), script)
        start, offset = self._timing.clock(), self.console.offset
        try:
            self._channel.ask(question)
            answer = self._wait(self._channel.answer, start + seconds * self.patience)
        except OSError as error:
            raise self._lost(f"the command channel is closed: {error}") from error
        ended = self._timing.clock()
        if not self._reaches(f"harness: {question.left} end"):
            raise self._lost("the console fell silent while the command channel still answered")
        return CommandResult(
            status=answer.status,
            output=answer.output.decode(errors="replace"),
            seconds=ended - start,
            console=(offset, self.console.offset),
        )

    def follows_from_misboot(self, splat: Splat) -> bool:
        """True if the failed clock calibration that `misboot` describes is known to cause this report."""
        return any(fnmatch.fnmatchcase(splat.title, glob) for glob in self._follows)

    def _reaches(self, fence: str) -> bool:
        """Wait for a text that the agent prints on the console. False if the deadline passes first."""
        deadline = self._timing.clock() + self._timing.fence * self.patience
        while (seconds := min(self._timing.poll, deadline - self._timing.clock())) > 0 and not self.console.closed.is_set():
            if self.console.wait_for_fence(fence, seconds):
                return True
        return self.console.wait_for_fence(fence, 0)

    def _wait(self, ask: Callable[[float], T | None], deadline: float) -> T:
        """Ask again and again, for a while each time, until the answer is a true one."""
        while (seconds := min(self._timing.poll, deadline - self._timing.clock())) > 0:
            try:
                if answer := ask(seconds):
                    return answer
            except EOFError:
                self.console.closed.wait(self._timing.last_words)
                raise self._lost("the guest is gone") from None
            except Broken as broken:
                raise self._lost(str(broken)) from None
            if self.console.fatal:
                self.console.closed.wait(self._timing.last_words)
                raise self._lost("the kernel panicked")
        with contextlib.suppress(EOFError, Broken):
            # The answer may have arrived after the deadline check, while this process was not scheduled.
            if answer := ask(0):
                return answer
        self.console.check()
        self._machine.check()
        gaps = self.console.take_gaps()  # what the backtraces drop is our doing
        evidence, splats = self._backtraces()
        raise GuestTimeout("no answer before the deadline", evidence, splats, gaps)

    def _lost(self, message: str) -> GuestLost:
        self.console.check()
        self._machine.check()
        return GuestLost(message, self.console.tail(), self.console.take_splats(), self.console.take_gaps())

    def sysrq(self, key: str = "") -> None:
        """What introduces a SysRq key on this machine's console, and the key."""
        if not self._sysrq:
            self._machine.send_break()
        self.console.send(f"{self._sysrq}{key}".encode())

    def _listen(self, begin: int) -> None:
        """Wait until the console has printed something after the offset `begin` and is silent again, but not longer than
        `last_words`."""
        last = begin
        deadline = self._timing.clock() + self._timing.last_words
        while self._timing.clock() < deadline and not self.console.closed.wait(self._timing.poll):
            if self.console.offset == last != begin:
                return
            last = self.console.offset

    def _backtraces(self) -> tuple[str, list[Splat]]:
        """What are the CPUs doing, and who waits for what? QEMU knows where the CPUs are. SysRq needs one that takes interrupts;
        where none does, an NMI makes some architectures talk. And the console's last lines.

        With it come the kernel's reports up to the NMI. Later ones are ours: the NMI makes some kernels panic."""
        counters = self._machine.program_counters()
        before, offset = self.console.tail(), self.console.offset
        with contextlib.suppress(OSError):
            for key in _BACKTRACES:
                asked_at = self.console.offset
                self.sysrq(key)
                self._listen(asked_at)
        splats = self.console.take_splats()
        if self.console.offset == offset:
            self._machine.monitor("inject-nmi")
            self._listen(offset)
            self.console.take_splats()
        places = [f"CPU {number} is at 0x{address}" for number, address in enumerate(counters)]
        evidence = [*places, before, *itertools.islice(self.console.read(offset), _LONGEST_BACKTRACES)]
        return "\n".join(evidence), splats


@contextlib.contextmanager
def started(
    arch: Arch,
    accelerator: Accelerator,
    directory: Path,
    boot: Boot,
    name: str = "console",
    tee: Callable[[bytes], None] = lambda data: None,
    host: Host | None = None,
    place: Place = HERE,
    timing: Timing = TIMING,
) -> Iterator[Guest]:
    """A guest for the length of the block, still booting. Its console goes to `directory`/<name>.log, appended, and to `tee`, the
    command that starts it likewise to qemu.cmd. It is told what `host` knows, and `host` learns from it. Raises PlaceLost if
    the way to it breaks."""
    if host:
        boot = msgspec.structs.replace(boot, cmdline=(*host.parameters, *boot.cmdline))
    stem = name.replace("console", "qemu")
    with (directory / f"{stem}.cmd").open("a") as commands:
        commands.write(qemu.by_hand(arch, accelerator, boot) + "\n")
    with place.start(arch, accelerator, boot, directory / f"{stem}.log") as machine:
        console = Console(machine.console, directory / f"{name}.log", tee, timing.settle)
        try:
            yield Guest(machine, console, arch, boot.patience(accelerator), host, timing)
        finally:
            machine.kill()
            console.close()
