"""A guest by hand: the same kernel, initramfs and modules as a run's, with a shell on its console or for one command."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import msgspec

from harness import guest, kernel, process
from harness.cache import Cache
from harness.errors import InfrastructureError, UserError
from harness.guest import HERE, Boot, GuestGone, Host, terminal
from harness.model import Kernel
from harness.progress import Progress
from harness.request import Request
from harness.results import RunReport
from harness.suites import QUIET

_COMMAND_SECONDS = 3600.0


class Shell:
    """The guest of the one job that `harness build` made for `report`."""

    def __init__(self, report: RunReport, request: Request, cache: Cache) -> None:
        (job,) = report.jobs.values()
        (self._arch,) = request.archs
        assert job.facts.kernel and job.facts.selftests
        cache.session.use(f"kernels/{job.facts.kernel}")
        built = cache.read_record("kernels", job.facts.kernel, Kernel)
        if built is None:
            hint = "`harness cache prune` removed it just now: run the command again"
            raise InfrastructureError("the kernel is not in the cache any more", hint=hint)
        self._vmlinux = built.vmlinux
        compiler = kernel.detect(self._arch, request.options.toolchain).compiler
        initramfs, _ = guest.build_initramfs(built, job.facts.selftests, self._arch, compiler, cache)
        self._boot = Boot(built.image, initramfs.path, QUIET, memory=guest.room_for(initramfs.path))
        self._accelerator = HERE.accelerator(self._arch, self._boot, cache, request.options.accel)
        self._host = Host(self._arch, cache, HERE.key(self._arch))
        self._directory = report.directory / job.arch / job.point

    def run(self, command: str) -> int:
        """Print what a command prints, and what the kernel has to complain of. Returns the command's exit status, or 1 if only
        the kernel complained. Raises InfrastructureError if the guest dies of it."""
        with guest.started(self._arch, self._accelerator, self._directory, self._boot, host=self._host) as found:
            try:
                found.wait_for_agent()
                answer = found.run(command, "command", _COMMAND_SECONDS)
            except GuestGone as gone:
                raise InfrastructureError(f"lost: {gone.message}", hint=gone.console[-2000:]) from gone
        # Only now has all that the kernel printed been read.
        splats, gaps = found.console.take_splats(), found.console.take_gaps()
        sys.stdout.write(answer.output)
        for splat in splats:
            sys.stderr.write(f"{splat.text}\n")
        for gap in gaps:
            sys.stderr.write(f"lines of the kernel's may be missing: {gap}\n")
        return answer.status or int(bool(splats or gaps))

    def interact(self, gdb: bool, say: Progress) -> None:
        """Connect this terminal to the guest's console until one of the two ends."""
        size = terminal.size()
        cmdline = [*QUIET, f"harness.shell={size.lines}x{size.columns}"]
        with tempfile.TemporaryDirectory(prefix="harness-") as folder:
            arguments: list[str] = []
            say.say(terminal.HELP)
            if gdb:
                socket = Path(folder) / "gdb"
                arguments = ["-S", "-gdb", f"unix:{socket},server=on,wait=off"]
                cmdline.append("nokaslr")
                debugger = "gdb" if self._arch.native else "gdb-multiarch"
                words = [debugger, str(self._vmlinux), "-ex", f"target remote {socket}"]
                say.say(f"stopped before its first instruction; in another terminal:\n{process.command_line(words)}")
            boot = msgspec.structs.replace(self._boot, cmdline=tuple(cmdline), arguments=tuple(arguments))
            with guest.started(self._arch, self._accelerator, self._directory, boot, tee=terminal.show, host=self._host) as found:
                terminal.converse(found)
                if found.console.closed.is_set() and not found.console.spoke:
                    raise InfrastructureError("QEMU ended before the guest said anything", hint=f"see {self._directory}/qemu.log")


def check(request: Request) -> None:
    """Raises UserError for more than one guest."""
    if len(request.archs) != 1 or len(request.points) != 1:
        raise UserError("a shell needs one architecture and one point", hint="--arch A, and --points base or last")
