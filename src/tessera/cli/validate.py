"""`tessera validate`: checks what runs in tiers, and reports on every acceptance criterion."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table


@click.command()
@click.option("--quick", is_flag=True, help="A few configurations: less than three minutes on two cores.")
@click.option("--device", default="cpu", show_default=True, help="Where it runs: cpu or cuda:0.")
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    default=Path("tessera-validation"),
    show_default=True,
    help="Where the report goes: this name with .json and .md.",
)
@click.option(
    "--against",
    type=click.Path(path_type=Path, exists=True),
    help="The .json of an earlier report: speeds are compared.",
)
@click.option("--processes", type=int, default=0, help="Processes that compile everything beforehand.")
@click.option("--resume", is_flag=True, help="Goes on where the last validation with this output was stopped.")
def validate(quick: bool, device: str, output: Path, against: Path | None, processes: int, resume: bool) -> None:
    """Validates speed, numerics, agreement of tiers and robustness. The status is 0 where all that must hold holds."""
    from tessera.bench.validation.report import LEVELS, earlier_samples, verdict
    from tessera.bench.validation.suite import ValidationSuite
    from tessera.metatracing import MetaTracingRuntime
    from tessera.runtime.device.device import device as device_named

    before = None if against is None else earlier_samples(against)
    device_named(device).backend  # noqa: B018  (says what is missing where there is no such device)
    console = Console(highlight=False)
    with MetaTracingRuntime() as runtime:
        suite = ValidationSuite(device, quick=quick, told=lambda line: console.print(f"· {line}", soft_wrap=True))
        saved = output.with_suffix(".partial.json")
        report = suite.run_full_validation(runtime, None, before, processes, saved, resume=resume)
    table = Table(title="acceptance criteria")
    for column in ("", "criterion", "wanted", "found", "verdict"):
        table.add_column(column)
    for level, title in LEVELS.items():
        for one in report.criteria:
            if one.level == level:
                colour = {"holds": "green", "MISSED": "red"}.get(verdict(one), "yellow")
                found = f"{one.found} ({one.note})" if one.note else one.found
                table.add_row(title, one.name, one.wanted, found, f"[{colour}]{verdict(one)}[/]")
        table.add_section()
    console.print(table)
    for issue in report.issues:
        console.print(f"{issue.severity.value}: {issue.description}. {issue.suggested_fix}", soft_wrap=True)
    for line in (*report.failures, *report.robustness.told):
        console.print(f"error: {line}", soft_wrap=True)
    data, text = report.write(output)
    saved.unlink(missing_ok=True)
    console.print(f"{report.seconds:.0f} s; the report is in {data} and {text}", soft_wrap=True)
    sys.exit(0 if report.overall_success else 1)
