"""What is missing on this machine."""

from __future__ import annotations

import click
import msgspec
from rich.markup import escape

from harness import arch, doctor
from harness.cli.root import ERR, OUT, cli
from harness.model import to_json


@cli.command("doctor")
@click.option("--arch", "archs", multiple=True, metavar="A", help="Architecture; repeatable. Default: all.")
@click.option("--toolchain", default="auto", metavar="gcc|llvm[-N]", help="As for `harness run`.")
@click.option("--tests", is_flag=True, help="And for the harness's own tests.")
@click.option("--install", is_flag=True, help="Install with apt what is missing.")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def doctor_command(archs: tuple[str, ...], toolchain: str, tests: bool, install: bool, as_json: bool) -> int:
    """What is missing or too old on this machine, and the exact command that installs it."""
    wanted = arch.chosen(archs)
    if install:
        findings = doctor.install(wanted, toolchain, lambda text: ERR.print(escape(text)), tests)
    else:
        findings = doctor.examine(wanted, toolchain, tests)
    command = doctor.plan(findings).text
    if as_json:
        fields = ("name", "purpose", "minimum", "optional")
        rows = [
            {"found": one.met, "problem": one.problem, **{field: getattr(one.need, field) for field in fields}}
            for one in findings
        ]
        click.echo(msgspec.json.format(to_json({"needs": rows, "install": command})).decode())
    else:
        for one in findings:
            colour = "green" if one.met else "yellow" if one.need.optional else "red"
            state = "found" if one.met else f"optional, {one.problem}" if one.need.optional else one.problem
            OUT.print(f"[{colour}]{escape(state):<8}[/{colour}] {escape(one.need.name)} [dim]({escape(one.need.purpose)})[/dim]")
        if command:
            OUT.print(f"\n{escape(command)}")
    return 3 if doctor.missing(findings) else 0
