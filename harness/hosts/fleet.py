"""Which machine a guest runs on."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.arch import Arch
from harness.guest import HERE, Accelerator, Place
from harness.hosts.config import HostSpec

if TYPE_CHECKING:
    from harness.hosts.ssh import SshHost


class Fleet:
    """This machine, and those of hosts.toml until the way to one breaks."""

    def __init__(self, specs: Sequence[HostSpec] = ()) -> None:
        hosts = _reached_by_ssh(specs) if specs else []
        self._lock = threading.Lock()
        self._hosts = hosts
        self._jobs = {host.name: 0 for host in hosts}

    @property
    def slots(self) -> dict[str, int]:
        """Guests at a time, by the names of the machines behind SSH."""
        return {host.name: host.spec.slots for host in self._hosts}

    def choose(self, arch: Arch) -> Place:
        """Where the guests of one more job are to run: with KVM if there is such a machine, then where there is least to do for
        its slots; here, if no other one takes the architecture."""
        with self._lock:
            found = [host for host in self._hosts if arch.name in host.spec.archs]
            if not found:
                return HERE
            best = min(found, key=lambda host: (host.spec.accel is not Accelerator.KVM, self._jobs[host.name] / host.spec.slots))
            self._jobs[best.name] += 1
            return best

    def lose(self, place: Place) -> None:
        """It is not chosen any more."""
        with self._lock:
            self._hosts = [host for host in self._hosts if host is not place]


def _reached_by_ssh(specs: Sequence[HostSpec]) -> list[SshHost]:
    from harness.hosts.ssh import SshHost

    return [SshHost(spec) for spec in specs]
