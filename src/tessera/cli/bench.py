"""`tessera bench`: runs benchmarks, compares runs, keeps their history, and says by its exit status how it went."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from tessera.bench.results.definitions import BenchError, BenchmarkMode, MeasurementType
from tessera.cli import bench_session as session

_STATUSES = """
\b
Exit status: 0 all is well, 1 a mistake in what was asked, 2 a mistake in the command line,
3 an implementation failed or there was nothing to compare, 4 a regression, 5 results could
not be written, 130 interrupted. Of several, the largest.
"""


_PATH: click.Path[Path] = click.Path(path_type=Path)
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def _options(*options: Decorator) -> Decorator:
    """Several options as one decorator, in their order."""

    def added(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return added


_threshold = click.option(
    "--threshold", type=click.FloatRange(0), default=None, help="Percent that a change must exceed to count."
)
_files = click.option("--file", "files", multiple=True, type=_PATH, help="A Python file with benchmarks.")
_outputs = _options(
    click.option("--json", "json_path", type=_PATH, help="All results, samples included."),
    click.option("--csv", "csv_path", type=_PATH, help="One line per row."),
    click.option("--md", "md_path", type=_PATH, help="Tables in Markdown."),
    click.option("--html", "html_path", type=_PATH, help="One page with plots."),
    click.option("--history", "history_path", type=_PATH, help="An SQLite file to add to."),
)
_how = _options(
    click.option("--quick", is_flag=True, help="A few small sizes, less time: under a minute."),
    click.option("--size", "sizes", multiple=True, metavar="NAME=N,…", help="A size; may be repeated."),
    click.option(
        "--set", "set_name", default=None, help="Attention sizes: small, medium, large, variable, mixed, cpu."
    ),
    click.option("--precision", "precisions", multiple=True, help="f32, bf16, …; may be repeated."),
    click.option("--implementations", default=None, metavar="A,B", help="Only these; the first is the baseline."),
    click.option(
        "--mode",
        type=click.Choice([mode.value for mode in BenchmarkMode]),
        default=None,
        help="By default comparison; for check, regression.",
    ),
    click.option(
        "--measure",
        "measures",
        multiple=True,
        type=click.Choice([kind.value for kind in MeasurementType]),
        help="Only these.",
    ),
    click.option("--threads", type=click.IntRange(1), default=None, help="For every implementation alike."),
    click.option("--seconds", type=click.FloatRange(0.01), default=None, help="The most time for a case."),
    click.option("--samples", type=click.IntRange(1), default=None, help="The most samples of each."),
    click.option("--cold", is_flag=True, help="Empty the caches before each sample."),
    click.option("--pause", type=click.FloatRange(0), default=0.0, help="Seconds between rounds, to cool down."),
    click.option("--seed", type=int, default=None, help="Of the inputs; otherwise another one each time."),
    _files,
    click.option("--in-process", is_flag=True, help="Do not protect the run from crashes; for debuggers."),
    click.option("--hang-seconds", type=click.FloatRange(1), default=300.0, show_default=True),
)
_one_case = _options(
    click.option("--size", "size_text", default=None, metavar="NAME=N,…", help="By default the first quick size."),
    click.option("--precision", "policy", default="f32", show_default=True),
    click.option("--threads", type=click.IntRange(1), default=1, show_default=True),
)


@click.group(epilog=_STATUSES)
def bench() -> None:
    """TesseraBench: benchmarks that are calibrated and hard to fool."""


@bench.command("list")
@_files
def list_command(files: tuple[Path, ...]) -> None:
    """What can be run, and which implementations can be used here."""
    from tessera.bench import registry
    from tessera.bench.operator import OperatorBenchmark

    for path in files:
        registry.load(path)
    for name in registry.names():
        try:
            benchmark = registry.get(name)
        except BenchError as error:
            click.echo(f"{name:18} {error.message}")
            continue
        click.echo(f"{name:18} {benchmark.get_description()}")
        if isinstance(benchmark, OperatorBenchmark):
            for one in benchmark.implementations.values():
                missing = one.framework.missing()
                click.echo(f"    {one.name:18} {'ready' if missing is None else f'skipped: {missing}'}")


@bench.command(epilog=_STATUSES)
@click.argument("names", nargs=-1, required=True, metavar="BENCHMARK…")
@_how
@_outputs
def run(names: tuple[str, ...], **options: Any) -> None:
    """Runs benchmarks: accuracy first, implementations in rounds, fresh inputs for every call."""
    suite, status = session.run(names, options)
    sys.exit(max(status, session.write(suite, options)))


@bench.command(epilog=_STATUSES)
@click.argument("baseline", type=_PATH)
@click.argument("current", type=_PATH)
@_threshold
@click.option("--json", "json_path", type=_PATH, help="The verdicts.")
def compare(baseline: Path, current: Path, threshold: float | None, json_path: Path | None) -> None:
    """Compares two result files; status 4 if anything became worse."""
    from tessera.bench.reporting.exchange import read_json

    sys.exit(session.judge(session.compared(read_json(baseline), read_json(current), threshold), json_path))


@bench.command(epilog=_STATUSES)
@click.argument("names", nargs=-1, metavar="[BENCHMARK…]")
@click.option("--baseline", type=_PATH, required=True, help="The results to hold this run against.")
@_threshold
@click.option("--verdicts", "verdicts_path", type=_PATH, help="The verdicts as JSON.")
@_how
@_outputs
def check(
    names: tuple[str, ...], baseline: Path, threshold: float | None, verdicts_path: Path | None, **options: Any
) -> None:
    """Runs what the baseline ran (or some of it) and compares; status 4 if anything became worse."""
    from tessera.bench.reporting.exchange import read_json

    before = read_json(baseline)
    wanted = names or tuple(dict.fromkeys(row.benchmark_name for row in before.results.values()))
    if not options["sizes"] and not options["quick"] and not options["set_name"]:
        like = [row for row in before.get_successful_results().values() if row.benchmark_name in wanted]
        options["like"] = like
        options["cold"] = options["cold"] or any(row.config is not None and row.config.cold for row in like)
    options["mode"] = options["mode"] or BenchmarkMode.REGRESSION.value
    suite, status = session.run(wanted, options)
    if suite.interrupted:
        sys.exit(max(status, session.write(suite, options)))
    comparison = session.compared(session.part_of(before, suite), suite, threshold)
    status = max(status, session.write(suite, options, comparison))
    whole = not any(options[name] for name in ("precisions", "sizes", "quick", "set_name", "threads"))
    sys.exit(max(status, session.judge(comparison, verdicts_path, complete=whole)))


@bench.command()
@click.argument("results", type=_PATH)
@_outputs
def report(results: Path, **options: Any) -> None:
    """Makes tables and pages of a result file, or of the journal of a run that was cut off."""
    from rich.console import Console

    from tessera.bench.reporting.exchange import Journal, read_json
    from tessera.bench.reporting.tables import print_suite

    suite = Journal.recover(results) if results.suffix == ".journal" else read_json(results)
    print_suite(suite, Console())
    sys.exit(session.write(suite, options, measured=False))


@bench.command()
@click.argument("history", type=_PATH)
@click.option("--key", default=None, help="Rows whose key contains this.")
@click.option("--metric", default="latency_ms", show_default=True)
def history(history: Path, key: str | None, metric: str) -> None:
    """Shows the runs in a history, or the figures of some rows over time."""
    from tessera.bench.reporting.history import History
    from tessera.bench.reporting.wording import moment

    if not history.is_file():
        raise BenchError(f"there is no history {history}", hint="tessera bench run … --history FILE makes one")
    with History(history) as kept:
        if key is None:
            for one in kept.runs():
                click.echo(
                    f"{one.id:>5}  {moment(one.time)}  {(one.commit or '-')[:12]:12}  "
                    f"{one.measured} measured, {one.failed} failed"
                )
            return
        for name in [name for name in kept.keys() if key in name]:  # noqa: SIM118  (a history is no dictionary)
            click.echo(name)
            for point in kept.series(name, metric):
                interval = "" if point.low is None else f"  ({point.low:.5g} to {point.high:.5g})"
                click.echo(f"    {moment(point.time)}  {(point.commit or '-')[:12]:12}  {point.value:.5g}{interval}")


@bench.command("duel", epilog=_STATUSES)
@click.argument("name", metavar="BENCHMARK")
@click.argument("baseline")
@click.argument("current")
@_one_case
@_threshold
@_files
def duel_command(name: str, baseline: str, current: str, **options: Any) -> None:
    """Two implementations in pairs of samples until it is clear which is faster; status 4 if CURRENT is slower."""
    sys.exit(session.duel(name, (baseline, current), **options))


@bench.command()
@click.argument("name", default="softmax", metavar="[BENCHMARK]")
@_one_case
@click.option("--slower", type=click.FloatRange(0), default=5.0, show_default=True, help="Percent.")
@click.option("--count", type=click.IntRange(1), default=10, show_default=True, help="Duels of each kind.")
def calibrate(name: str, **options: Any) -> None:
    """How far verdicts can be trusted on this machine: a kernel against itself, and against itself made slower."""
    sys.exit(session.calibrate(name, **options))


@bench.command()
def workflow() -> None:
    """Prints a workflow for GitHub Actions that checks each change against the main branch."""
    from tessera.bench.reporting.workflow import ci_workflow

    click.echo(ci_workflow(), nl=False)
