"""A guest: what it is made of, the QEMU that runs it, and the two serial lines to it."""

from harness.guest.guest import CommandResult, Guest, GuestGone, GuestLost, GuestTimeout, started
from harness.guest.host import Host
from harness.guest.initramfs import build_initramfs, room_for
from harness.guest.place import HERE, Here, Place, PlaceLost, kvm_runs
from harness.guest.qemu import Accelerator, Boot

__all__ = [
    "HERE",
    "Accelerator",
    "Boot",
    "CommandResult",
    "Guest",
    "GuestGone",
    "GuestLost",
    "GuestTimeout",
    "Here",
    "Host",
    "Place",
    "PlaceLost",
    "build_initramfs",
    "kvm_runs",
    "room_for",
    "started",
]
