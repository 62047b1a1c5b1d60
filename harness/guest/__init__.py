"""A guest: what it is made of, the QEMU that runs it, and the two serial lines to it."""

from harness.guest.guest import CommandResult, Guest, GuestGone, GuestLost, GuestTimeout, started
from harness.guest.host import Host
from harness.guest.initramfs import build_initramfs, room_for
from harness.guest.qemu import Accelerator, Boot, accelerator_for

__all__ = [
    "Accelerator",
    "Boot",
    "CommandResult",
    "Guest",
    "GuestGone",
    "GuestLost",
    "GuestTimeout",
    "Host",
    "accelerator_for",
    "build_initramfs",
    "room_for",
    "started",
]
