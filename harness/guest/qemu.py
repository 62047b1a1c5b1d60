"""Start QEMU for an architecture: its command line, its sockets, its monitor."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import shlex
import socket
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path

from msgspec import Struct
from qemu.qmp import QMPClient, QMPError

from harness import process
from harness.arch import Arch
from harness.errors import InfrastructureError

_QMP_SECONDS = 5.0

_PROGRAM_COUNTER = re.compile(
    r"(?:\b(?:RIP|EIP|PC)=|\bR15=(?=[0-9a-f]{8}\b)|\bpc\s+(?:0x)?|\bNIP\s+|\bPSW=mask [0-9a-f]+ addr )"
    r"(?P<address>[0-9a-f]{8,16})\b",
    re.IGNORECASE,
)
"""As each of QEMU's targets prints it."""


class Accelerator(StrEnum):
    KVM = "kvm"
    TCG = "tcg"


class Boot(Struct, frozen=True):
    """What a kernel is started with. `cmdline` comes last on the kernel's command line, `arguments` on QEMU's."""

    image: Path
    initramfs: Path
    cmdline: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    cpus: int | None = None
    """Other than the machine's usual."""
    counting: bool = False
    """Time is the number of instructions, one a nanosecond. For one CPU, under TCG."""
    memory: int = 0
    """MiB beside the machine's usual."""
    slowness: int = 1
    """How many times longer than usual this kernel takes, by its configuration."""

    def patience(self, accelerator: Accelerator) -> int:
        """What deadlines, given in seconds of a usual kernel with KVM, are multiplied by."""
        return self.slowness * (1 if accelerator is Accelerator.KVM else 5)


def arguments(arch: Arch, accelerator: Accelerator, boot: Boot, chardevs: Sequence[str]) -> list[str]:
    """QEMU's command line, with these character devices."""
    machine = arch.guest
    cpus = boot.cpus or machine.cpus
    tcg = machine.counting if boot.counting else machine.tcg
    accel = f"tcg,{tcg}" if accelerator is Accelerator.TCG else accelerator.value
    cmdline = [
        f"console={machine.console}",
        f"harness.channel={machine.channel or 'console'}",
        "ignore_loglevel",
        # Without it KASAN is silent after its first report (report_enabled in mm/kasan/report.c). A
        # kernel without KASAN hands the word to init, which ignores it.
        "kasan_multi_shot",
        # With -no-reboot, a kernel that panics ends QEMU at once, and the harness knows.
        "panic=-1",
        f"watchdog_thresh={min(60, 10 * boot.patience(accelerator))}",
        f"rcupdate.rcu_cpu_stall_timeout={min(300, 21 * boot.patience(accelerator))}",
        machine.cmdline,
        *boot.cmdline,
    ]
    return [
        machine.program,
        # A guest that breaks out of its machine finds that QEMU may start nothing and become nobody.
        *("-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"),
        *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *("-machine", machine.machine, "-accel", accel, "-cpu", machine.cpu[accelerator.value]),
        *("-m", str(machine.memory + boot.memory), "-smp", f"{cpus},sockets={cpus}"),
        *("-kernel", str(boot.image), "-initrd", str(boot.initramfs), "-append", " ".join(filter(None, cmdline))),
        *(word for chardev in chardevs for word in ("-chardev", chardev)),
        *(("-mon", "chardev=monitor,mode=control") if any("id=monitor" in chardev for chardev in chardevs) else ()),
        *machine.arguments,
        *(("-icount", "shift=0,sleep=off") if boot.counting else ()),
        *boot.arguments,
    ]


def by_hand(arch: Arch, accelerator: Accelerator, boot: Boot) -> str:
    """The command line that boots the same guest in a terminal: console on stdio, command channel on a pseudo-terminal."""
    chardevs = ["stdio,id=console,signal=off", *(["pty,id=channel"] if arch.guest.channel else [])]
    return shlex.join(arguments(arch, accelerator, boot, chardevs))


class Qemu:
    """A running QEMU. `console` and `channel` are our ends of its serial lines; a machine with one has no `channel`."""

    def __init__(
        self,
        log: Path,
        console: socket.socket,
        monitor: socket.socket,
        channel: socket.socket | None,
        kill: Callable[[], None],
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """`check` raises PlaceLost if what is silent may be the way to QEMU."""
        self.log = log
        self.console = console
        self.channel = channel
        self.kill = kill
        """A guest has no disk whose content could suffer."""
        self.check = check
        self._monitor = monitor
        self._greeted = False

    def monitor(self, command: str, **arguments: object) -> object:
        """Give the monitor one command, and return what it says. None if it does not answer in time, which is no news: QEMU may
        be gone, or stuck."""
        logging.getLogger("qemu.qmp").setLevel(logging.CRITICAL)

        async def ask() -> object:
            client = QMPClient()
            # QEMU greets once for each connection, and this one lasts as long as QEMU.
            client.await_greeting = client.negotiate = not self._greeted
            self._greeted = True
            await client.connect(self._monitor.dup())
            try:
                return await client.execute(command, arguments)
            finally:
                await client.disconnect()

        with contextlib.suppress(QMPError, OSError, TimeoutError, EOFError):
            return asyncio.run(asyncio.wait_for(ask(), _QMP_SECONDS))
        return None

    def send_break(self) -> None:
        """A serial break on the console: the next character is a SysRq command."""
        self.monitor("chardev-send-break", id="console")

    def program_counters(self) -> list[str]:
        """Of each CPU, in hexadecimal; this needs nothing of the guest."""
        said = self.monitor("human-monitor-command", **{"command-line": "info registers -a"})
        return [match["address"].lower() for match in _PROGRAM_COUNTER.finditer(str(said or ""))]


@contextlib.contextmanager
def start(arch: Arch, accelerator: Accelerator, boot: Boot, log: Path) -> Iterator[Qemu]:
    """Run QEMU for the length of the block; what it prints itself goes to `log`.

    The sockets exist before QEMU does and are handed over as file descriptors: no names, no ports that stay open, no races."""
    with contextlib.ExitStack() as stack:
        ours: list[socket.socket] = []
        theirs: list[socket.socket] = []
        for _ in lines(arch):
            here, there = _pair()
            ours.append(stack.enter_context(here))
            theirs.append(stack.enter_context(there))
        chardevs = [f"socket,id={name},fd={there.fileno()}" for name, there in zip(lines(arch), theirs, strict=True)]
        argv = arguments(arch, accelerator, boot, chardevs)
        file = stack.enter_context(log.open("ab"))
        fds = [there.fileno() for there in theirs]
        child = stack.enter_context(process.start(argv, stdout=file, pass_fds=fds))
        for there in theirs:
            there.close()
        console, monitor, *channel = ours

        def kill() -> None:
            child.kill()
            child.wait()

        yield Qemu(log, console, monitor, channel[0] if channel else None, kill)


def lines(arch: Arch) -> list[str]:
    """What QEMU is connected by."""
    return ["console", "monitor", *(["channel"] if arch.guest.channel else [])]


def _pair() -> tuple[socket.socket, socket.socket]:
    """Two connected sockets. QEMU writes byte by byte, and a Unix socket that nobody reads takes 278 of those; then a kernel that
    has waited for 10 ms writes all the same, and what it said is lost (wait_for_lsr in drivers/tty/serial/8250/8250_port.c).
    TCP takes millions."""
    try:
        with socket.create_server(("127.0.0.1", 0), backlog=1) as server:
            here = socket.create_connection(server.getsockname())
            there, peer = server.accept()
    except OSError:
        return socket.socketpair()  # there are containers without a loopback device
    if peer != here.getsockname():
        here.close()
        there.close()
        raise InfrastructureError("another program has connected to the guest's console", hint="start the run again")
    for end in (here, there):
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return here, there
