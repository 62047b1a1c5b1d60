"""Which machine is chosen."""

from __future__ import annotations

from harness.arch import load
from harness.guest import HERE, Accelerator
from harness.hosts import Fleet, HostSpec


def host(name: str, *archs: str, accel: Accelerator = Accelerator.KVM, slots: int = 1) -> HostSpec:
    return HostSpec(name, name, archs=archs, accel=accel, slots=slots)


def chosen(fleet: Fleet, arch: str, times: int = 1) -> list[str]:
    return [fleet.choose(load(arch)).name for _ in range(times)]


def test_without_hosts_it_is_here() -> None:
    assert Fleet().choose(load("arm64")) is HERE
    assert Fleet([host("a", "arm64")]).choose(load("x86_64")) is HERE


def test_kvm_before_cores_that_are_lent() -> None:
    fleet = Fleet([host("lent", "arm64", accel=Accelerator.TCG), host("native", "arm64")])
    assert chosen(fleet, "arm64", 3) == ["native"] * 3


def test_jobs_are_shared_out_by_slots() -> None:
    fleet = Fleet([host("small", "arm64"), host("big", "arm64", slots=3)])
    found = chosen(fleet, "arm64", 8)
    assert (found.count("small"), found.count("big")) == (2, 6)
    assert fleet.slots == {"small": 1, "big": 3}


def test_lost_host_is_not_chosen_again() -> None:
    fleet = Fleet([host("a", "arm64"), host("b", "arm64")])
    lost = fleet.choose(load("arm64"))
    fleet.lose(lost)
    assert lost.name not in chosen(fleet, "arm64", 4)
    fleet.lose(fleet.choose(load("arm64")))
    assert fleet.choose(load("arm64")) is HERE
