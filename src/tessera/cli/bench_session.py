"""A run of benchmarks from the command line: its configurations, its journal, its files and its exit status."""

from __future__ import annotations

import dataclasses
import os
import secrets
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from tessera.bench import registry
from tessera.bench.configs import SETS
from tessera.bench.core import Here, TesseraBench
from tessera.bench.instruments.hardware import detect
from tessera.bench.measuring.cases import implementations_of
from tessera.bench.measuring.frameworks import has_gpu
from tessera.bench.measuring.precision import precision
from tessera.bench.operator import OperatorBenchmark
from tessera.bench.processes.distributed import mpi_rank
from tessera.bench.processes.worker import Isolated
from tessera.bench.reporting import exchange, tables
from tessera.bench.results.comparison import METRICS, Comparison, Verdict, compare_runs
from tessera.bench.results.definitions import BenchError, BenchmarkConfig, BenchmarkMode, MeasurementType, ProblemSize
from tessera.bench.results.results import BenchmarkSuiteResult, Row
from tessera.errors import ResourceError

FAILED, REGRESSED, NOT_WRITTEN, INTERRUPTED = 3, 4, 5, 130
_REGRESSION_PERCENT = 1.0
"""How well medians must be known where they are held against others."""
_QUICK_SECONDS, _QUICK_SAMPLES = 3.0, 60
Options = Mapping[str, Any]


def run(names: Sequence[str], options: Options) -> tuple[BenchmarkSuiteResult, int]:
    """Runs benchmarks as the options say; the status is of what failed."""
    for path in options["files"]:
        registry.load(path)
    options = {**options, "seed": options["seed"] if options["seed"] is not None else secrets.randbits(63)}
    leading = leads()
    console = Console(quiet=not leading)
    plans = [(name, config) for name in names for config in configs(name, options)]
    if not plans:
        raise BenchError(
            "there is nothing to run", hint="no size is left for these precisions; see --set and --precision"
        )
    runner = Here() if options["in_process"] else Isolated(options["files"], hang_seconds=options["hang_seconds"])
    journal = _Journal(options["json_path"] if leading else None)
    suites: list[BenchmarkSuiteResult] = []

    def measure(progress: tables.Progress) -> None:
        def on_rows(rows: Sequence[Row]) -> None:
            for row in rows:
                journal.append(row)
                progress.finish(row)

        engine = TesseraBench(runner=runner, on_rows=on_rows)
        for name, config in plans:
            progress.begin(name)
            suites.append(engine.run_benchmark(name, config))
            if suites[-1].interrupted:
                break

    # From here on there is a journal: whenever an interrupt comes, what is in it is written.
    try:
        with tables.Progress(console, total=sum(_row_count(name, config) for name, config in plans)) as progress:
            measure(progress)
    except KeyboardInterrupt:
        suites.append(BenchmarkSuiteResult(interrupted=True))
    finally:
        if isinstance(runner, Isolated):
            runner.close()
    suite = _joined(suites)
    journal.close(suite)
    tables.print_suite(suite, console)
    if suite.interrupted:
        return suite, INTERRUPTED
    return suite, FAILED if suite.get_failed_results() or not suite.get_successful_results() else 0


def leads() -> bool:
    """Whether this process prints and writes: of several ranks under MPI the first, otherwise the only one."""
    rank = mpi_rank()
    return rank is None or rank[0] == 0


def _joined(suites: Sequence[BenchmarkSuiteResult]) -> BenchmarkSuiteResult:
    first, *others = suites
    for other in others:
        first.extend(other.results.values())
        for name, found in other.ceilings.items():
            first.ceilings[name] = {**first.ceilings.get(name, {}), **found} if isinstance(found, dict) else found
        first.interrupted = first.interrupted or other.interrupted
        first.suite_end_time = other.suite_end_time
    return first


def configs(name: str, options: Options) -> list[BenchmarkConfig]:
    """The configurations that the options mean: one per set of sizes that share their precisions."""
    benchmark = registry.get(name)
    quick = options["quick"]
    alone = BenchmarkMode.COMPARISON if mpi_rank() is None else BenchmarkMode.DISTRIBUTED
    mode = BenchmarkMode(options["mode"] or alone.value)
    base = BenchmarkConfig(name, benchmark.get_description(), mode, hardware=detect())
    measures = [MeasurementType(kind) for kind in options["measures"]] or list(base.measurements)
    if mode is BenchmarkMode.PROFILING and not options["measures"]:
        measures = list(MeasurementType)
    base = dataclasses.replace(
        base,
        max_variance_percent=_REGRESSION_PERCENT if mode is BenchmarkMode.REGRESSION else base.max_variance_percent,
        measurements=measures,
        threads=options["threads"],
        seconds_per_case=options["seconds"] or (_QUICK_SECONDS if quick else base.seconds_per_case),
        timing_iterations=options["samples"] or (_QUICK_SAMPLES if quick else base.timing_iterations),
        cold=options["cold"],
        pause_seconds=options["pause"],
        seed=options["seed"],
        implementations=_implementations(benchmark, options),
    )
    policies = list(options["precisions"]) or ["f32", "bf16"]
    for policy in policies:
        precision(policy)
    made = [
        dataclasses.replace(base, sizes=sizes, precision_policies=[policy], threads=threads)
        for sizes, policy, threads in _sizes(name, benchmark, policies, options)
    ]
    if isinstance(benchmark, OperatorBenchmark):  # mistakes are told before anything runs
        implementations_of(benchmark, base, None)
        for size in (size for config in made for size in config.sizes or ()):
            benchmark.check(size)
    return made


def _implementations(benchmark: Any, options: Options) -> list[str] | None:
    if options["implementations"]:
        return [name.strip() for name in options["implementations"].split(",")]
    if like := [row.implementation for row in options.get("like", ()) if row.benchmark_name == benchmark.get_name()]:
        return list(dict.fromkeys(like))
    if not isinstance(benchmark, OperatorBenchmark):
        return None
    quick = [one for one in benchmark.implementations.values() if not (options["quick"] and one.slow_to_build)]
    # Where there is a GPU, what runs on it; where there is none, what needs none.
    here = [one.name for one in quick if one.framework.needs_gpu == has_gpu()]
    return here or [one.name for one in quick]


def _sizes(
    name: str, benchmark: Any, policies: Sequence[str], options: Options
) -> list[tuple[list[ProblemSize] | None, str, int | None]]:
    threads = options["threads"]
    if options["sizes"]:
        given: list[ProblemSize] | None = [_size(text) for text in options["sizes"]]
        return [(given, policy, threads) for policy in policies]
    if (chosen := options["set_name"]) is not None:
        if chosen not in SETS or name != "flash_attention":
            raise BenchError(
                f"{name} has no set {chosen!r}", hint=f"flash_attention has {', '.join(SETS)}; others take --size"
            )
        made = SETS[chosen]()
        return [
            ([one.size for one in made if one.dtype == dtype], dtype, threads)
            for dtype in dict.fromkeys(one.dtype for one in made)
            if not options["precisions"] or dtype in {precision(policy).name for policy in policies}
        ]
    if like := [row for row in options.get("like", ()) if row.benchmark_name == name]:
        kinds: dict[tuple[str, int], dict[Any, ProblemSize]] = defaultdict(dict)
        for row in like:
            kinds[row.precision, row.threads][tuple(row.problem_size.items())] = row.problem_size
        return [
            (list(several.values()), *kind)
            for kind, several in kinds.items()
            if not options["precisions"] or kind[0] in {precision(policy).name for policy in policies}
            if threads in (None, kind[1])
        ]
    sizes: Sequence[ProblemSize] | None = None
    if isinstance(benchmark, OperatorBenchmark):
        large = (benchmark.gpu or benchmark.sizes) if has_gpu() else benchmark.cpu
        sizes = benchmark.quick if options["quick"] else large
    return [(list(sizes) if sizes else None, policy, threads) for policy in policies]


def _size(text: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for part in text.split(","):
        name, separator, value = part.partition("=")
        if not separator or not name.strip() or not value.strip():
            raise BenchError(f"cannot read the size {text!r}", hint="write --size seq_len=512,head_dim=64")
        found[name.strip()] = _value(value.strip(), text)
    return found


def _value(word: str, text: str) -> Any:
    if word.lower() in ("true", "false"):
        return word.lower() == "true"
    try:
        return int(word)
    except ValueError:
        raise BenchError(
            f"cannot read {word!r} in the size {text!r}", hint="values are whole numbers or true, false"
        ) from None


def _row_count(name: str, config: BenchmarkConfig) -> int:
    benchmark = registry.get(name)
    sizes = len(config.sizes if config.sizes is not None else benchmark.get_problem_sizes())
    if not isinstance(benchmark, OperatorBenchmark):
        return sizes * len(config.precision_policies)
    all_run = config.mode is BenchmarkMode.COMPARISON
    rows = len(config.implementations or benchmark.implementations) if all_run else 1
    return sizes * len(config.precision_policies) * rows


class _Journal:
    """Rows beside the result file until that is written; without a result file there is none."""

    def __init__(self, target: Path | None) -> None:
        # Beside a pipe or a device no file can be written.
        plain = target is not None and (target.is_file() or not target.exists())
        self.path = target.with_name(target.name + ".journal") if plain and target is not None else None
        self._open: exchange.Journal | None = None
        if self.path is None:
            return
        try:
            if self.path.exists():  # of a run that was killed: its rows are in no result file
                self.path.replace(self.path.with_name(self.path.name + ".old"))
            self._open = exchange.Journal(self.path)
            self._open.begin(BenchmarkSuiteResult())
        except (OSError, ResourceError) as error:
            self._give_up(error)

    def append(self, row: Row) -> None:
        if self._open is None:
            return
        try:
            self._open.append(row)
        except ResourceError as error:
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        """Results are in memory still; the run goes on."""
        click.echo(f"no journal is kept: {error.message if isinstance(error, ResourceError) else error}", err=True)
        self._open = None

    def close(self, suite: BenchmarkSuiteResult) -> None:
        if self._open is None:
            return
        try:
            self._open.finish(suite)
        except ResourceError as error:
            self._give_up(error)
            return
        self._open.close()


def write(
    suite: BenchmarkSuiteResult, options: Options, comparison: Comparison | None = None, *, measured: bool = True
) -> int:
    """Writes every file that was asked for. One that cannot be written does not keep the others from it."""
    if not leads():
        return 0
    kept = options["history_path"]
    writers: list[tuple[Path | None, Callable[[Path], None]]] = [
        (options["json_path"], partial(_write_json, suite, measured)),
        (options["csv_path"], partial(exchange.write_csv, suite)),
        (options["md_path"], partial(_write_markdown, suite)),
        (kept, partial(_add_to_history, suite)),
        (options["html_path"], partial(_write_page, suite, kept, comparison)),
    ]
    return max(_tried(path, writer) for path, writer in writers)


def _tried(path: Path | None, writer: Callable[[Path], None]) -> int:
    if path is None:
        return 0
    try:
        writer(path)
    except (ResourceError, BenchError) as error:
        error.span = error.span if error.is_located else None
        click.echo(f"{type(error).__name__}: {error}", err=True)
        return NOT_WRITTEN
    return 0


def _write_json(suite: BenchmarkSuiteResult, measured: bool, path: Path) -> None:
    """If it is what this process has measured, all of the journal is in the file now."""
    exchange.write_json(suite, path)
    if measured:
        path.with_name(path.name + ".journal").unlink(missing_ok=True)


def _write_markdown(suite: BenchmarkSuiteResult, path: Path) -> None:
    from tessera.bench.reporting.markdown import write_markdown

    write_markdown(suite, path)


def _write_page(suite: BenchmarkSuiteResult, kept: Path | None, comparison: Comparison | None, path: Path) -> None:
    from tessera.bench.reporting.history import History
    from tessera.bench.reporting.page import write_page

    history = History(kept) if kept is not None and kept.is_file() else None
    try:
        write_page(suite, path, history=history, comparison=comparison)
    finally:
        if history is not None:
            history.close()


def _add_to_history(suite: BenchmarkSuiteResult, path: Path) -> None:
    from tessera.bench.reporting.history import History

    with History(path) as history:
        history.add(suite, commit=os.environ.get("GITHUB_SHA"))


def part_of(before: BenchmarkSuiteResult, suite: BenchmarkSuiteResult) -> BenchmarkSuiteResult:
    """Those rows of a baseline that a run was to repeat: peers that it did not run are not missing."""
    ran = {(row.benchmark_name, row.implementation) for row in suite.results.values()}
    kept = {key: row for key, row in before.results.items() if (row.benchmark_name, row.implementation) in ran}
    return dataclasses.replace(before, results=kept)


def compared(before: BenchmarkSuiteResult, after: BenchmarkSuiteResult, threshold: float | None) -> Comparison:
    """Compares two runs; the threshold, in percent, is for every metric."""
    return compare_runs(before, after, None if threshold is None else dict.fromkeys(METRICS, threshold))


def judge(found: Comparison, path: Path | None, *, complete: bool = False) -> int:
    """Prints what changed; the status says whether anything became worse, or nothing could be compared.

    `complete`: what the baseline has must be there.
    """
    tables.print_comparison(found, Console())
    text = exchange.json_text(found.to_dict())
    lacking = FAILED if not found.changes or (complete and found.missing) else 0
    return max(found.exit_code, lacking, _tried(path, lambda path: exchange.write_atomically(path, text)))


def _operator(name: str, size_text: str | None) -> tuple[OperatorBenchmark, ProblemSize]:
    """A benchmark with implementations, and the size that is asked for or its first quick one."""
    benchmark = registry.get(name)
    if not isinstance(benchmark, OperatorBenchmark):
        raise BenchError(f"{name} has no implementations to compare", hint="take an OperatorBenchmark")
    sizes = benchmark.quick or benchmark.sizes
    if size_text is None and not sizes:
        raise BenchError(f"{name} has no sizes of its own", hint="give one: --size name=value")
    return benchmark, _size(size_text) if size_text else sizes[0]


def duel(
    name: str,
    sides: tuple[str, str],
    size_text: str | None,
    policy: str,
    threads: int,
    threshold: float | None,
    files: Sequence[Path],
) -> int:
    """Two implementations against each other; prints the verdict."""
    from tessera.bench.duels import BUDGET
    from tessera.bench.duels import duel as fight

    for path in files:
        registry.load(path)
    benchmark, size = _operator(name, size_text)
    config = dataclasses.replace(BUDGET, mode=BenchmarkMode.COMPARISON, threads=threads)
    first, second = implementations_of(benchmark, config, sides)
    if missing := [f"{one.name}: {why}" for one in (first, second) if (why := one.framework.missing()) is not None]:
        raise BenchError(f"cannot be used here: {'; '.join(missing)}", hint="tessera bench list shows what can")
    try:
        found = fight(benchmark, size, precision(policy), first, second, config, threshold=threshold)
    except BenchError as error:
        click.echo(f"{error.message}\n  help:  {error.hint}", err=True)
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    click.echo(
        f"{second.name} against {first.name}, {size_text or size}, {policy}: {found.verdict.value}\n"
        f"{found.baseline:.5g} ms and {found.current:.5g} ms in {found.samples[0]} pairs; {found.reason}"
    )
    return REGRESSED if found.verdict is Verdict.REGRESSION else 0


def calibrate(name: str, size_text: str | None, policy: str, slower: float, count: int, threads: int) -> int:
    """Fights duels with a known outcome and prints how they ended."""
    from tessera.bench.duels import BUDGET
    from tessera.bench.duels import calibrate as fight

    benchmark, size = _operator(name, size_text)
    config = dataclasses.replace(BUDGET, threads=threads)
    try:
        for percent in (0.0, slower):
            found = fight(
                benchmark, size, precision(policy), percent, count, config, lambda one: click.echo(one.reason)
            )
            click.echo(str(found))
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0
