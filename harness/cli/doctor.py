"""What is missing on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec
from rich.markup import escape

from harness import arch, doctor
from harness.cli.options import option
from harness.cli.root import ERR, OUT, cli
from harness.hosts import HostSpec, read_hosts
from harness.model import to_json

if TYPE_CHECKING:
    from harness.hosts.examine import HostFinding


@cli.command("doctor")
@option("archs")
@option("toolchain")
@click.option("--tests", is_flag=True, help="And for the harness's own tests.")
@option("hosts")
@option("install", help="Install with apt what is missing.")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def doctor_command(archs: tuple[str, ...], toolchain: str, tests: bool, hosts: Path | None, install: bool, as_json: bool) -> int:
    """What is missing or too old on this machine, and the exact command that installs it."""
    wanted = arch.chosen(archs)
    if install:
        findings = doctor.install(wanted, toolchain, lambda text: ERR.print(escape(text)), tests)
    else:
        findings = doctor.examine(wanted, toolchain, tests)
    command = doctor.plan(findings).text
    there = _there(read_hosts(hosts)) if hosts else []
    if as_json:
        fields = ("name", "purpose", "minimum", "optional")
        rows = [
            {"found": one.met, "problem": one.problem, **{field: getattr(one.need, field) for field in fields}}
            for one in findings
        ]
        click.echo(msgspec.json.format(to_json({"needs": rows, "install": command, "hosts": there})).decode())
    else:
        for one in findings:
            colour = "green" if one.met else "yellow" if one.need.optional else "red"
            state = f"optional, {one.problem}" if one.need.optional and not one.met else one.problem
            _tell(state or "found", colour, one.need.name, one.need.purpose)
        for other in there:
            _tell(other.problem or "found", "red" if other.problem else "green", f"{other.host}: {other.name}", other.purpose)
        if command:
            OUT.print(f"\n{escape(command)}")
    return 3 if doctor.missing(findings) or any(one.problem for one in there) else 0


def _there(specs: Sequence[HostSpec]) -> list[HostFinding]:
    # What it needs takes a while to import.
    from harness.hosts.examine import examine
    from harness.hosts.ssh import SshHost

    return [one for spec in specs for one in examine(SshHost(spec))]


def _tell(state: str, colour: str, name: str, purpose: str) -> None:
    OUT.print(f"[{colour}]{escape(state):<8}[/{colour}] {escape(name)} [dim]({escape(purpose)})[/dim]")
