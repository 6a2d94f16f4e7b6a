"""Rows of benchmarks/gpu_rows on a GPU, ours and peers interleaved, into benchmarks/results/<gpu>-<name>.json and .md.

    python benchmarks/gpu.py --name memory                        every row
    python benchmarks/gpu.py --only softmax --only copy           rows whose name contains a word; nothing is written
    python benchmarks/gpu.py --name beside --only 'beside rows' --merge    beside rows that the file has already
    python benchmarks/gpu.py --name memory --energy --profile     joules per call; ncu's figures where it is installed

Needs torch. How a row is measured is said in tessera/bench/cuda/contest.py, how one is declared in declarations.py.
Exit status: 0 all is well, 3 an entrant failed or was wrong, 4 a bar was missed.
"""

from __future__ import annotations

import argparse
import gc
import os
import secrets
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from tessera.bench.cuda import declarations, records, tables
from tessera.bench.cuda.contest import Entrant, Race
from tessera.bench.cuda.declarations import COPY, OURS, Row
from tessera.bench.cuda.device import TorchGpu, TorchInputs
from tessera.bench.instruments import gpu_timing as timing
from tessera.bench.instruments import ncu
from tessera.bench.instruments.gpu_conditions import gpu_environment, millijoules
from tessera.bench.instruments.hardware import environment
from tessera.errors import TesseraError

HERE = Path(__file__).parent
FAILED, MISSED = 3, 4
BATCH_SECONDS = 0.02


def chosen(words: Sequence[str], *, exactly: bool) -> list[Row]:
    declarations.load(HERE / "gpu_rows")
    if exactly:
        return [declarations.ROWS[name] for name in words]
    return [row for row in declarations.ROWS.values() if not words or any(word in row.name for word in words)]


def measured(row: Row, gpu: TorchGpu, options: argparse.Namespace) -> tuple[dict[str, Any], Mapping[str, str]]:
    """What was found of a row, and the PTX that ran. A row that cannot be made ready is one that says why."""
    try:
        inputs = TorchInputs(row.dtype, options.seed)
        contest = row.build(inputs)
        race = Race(row, contest, gpu, inputs, np.random.default_rng(options.seed))
        found = race.measure(options.rounds)
        if contest.occupancy is not None:
            found["occupancy"] = dict(contest.occupancy())
        if options.energy:
            for entrant in race.running:
                found["entrants"][entrant.name]["joules"] = joules(entrant, gpu)
        return found, contest.texts()
    except Exception as error:
        traceback.print_exc()
        said = error.message if isinstance(error, TesseraError) else f"{type(error).__name__}: {error}"
        return {"name": row.name, "failure": said}, {}


def joules(entrant: Entrant, gpu: TorchGpu) -> float | None:
    graph, launches = entrant.graph, max(1, round(BATCH_SECONDS * 1e3 / (entrant.calls * np.median(entrant.samples))))

    def work() -> int:
        for _ in range(launches):
            graph.replay()
        gpu.synchronize()
        return launches * entrant.calls

    try:
        return timing.joules_per_call(work, millijoules)
    except TesseraError as error:
        print(f"  no energy: {error.message}", file=sys.stderr)
        return None


def profiled(rows: Sequence[Row], found: Sequence[dict[str, Any]], options: argparse.Namespace) -> None:
    """One more run of the chosen rows, under ncu; its figures go to the entrants."""
    regions = {
        f"{number}.{index}": seen
        for number, row in enumerate(found)
        for index, (name, seen) in enumerate(row.get("entrants", {}).items())
        if name != COPY and "us" in seen
    }
    command = [sys.executable, __file__, "--under-ncu", "--seed", str(options.seed)]
    for row in rows:
        command += ["--only", row.name]
    # Compilers of torch's that run in processes of their own are of no interest.
    alone = {**os.environ, "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    profiles = ncu.profile(command, list(regions), alone, options.keep_ncu)
    for label, seen in regions.items():
        seen["profile"] = profiles[label].all()


def go_on(row: Row, options: argparse.Namespace) -> None:
    """Begins anew in the same process, behind a row, where results are merged; nothing else gets it its GPU back."""
    if options.name and options.merge:
        given = [each for each in sys.argv[1:] if not each.startswith("--after=")]
        os.execv(sys.executable, [sys.executable, __file__, *given, f"--after={row.name}"])


def prepare(rows: Sequence[Row], options: argparse.Namespace) -> None:
    """Calls every entrant of the rows once. What fails here fails again when it is measured, and says why then."""
    began = time.monotonic()
    for row in rows:
        if time.monotonic() - began > options.seconds:
            break
        try:
            contest = row.build(TorchInputs(row.dtype, options.seed))
            calls = {**({OURS: contest.ours} if contest.ours else {}), **contest.peers}
            calls |= {name: yardstick.call for name, yardstick in contest.yardsticks.items()}
        except Exception as error:
            print(f"{row.name}: {type(error).__name__}: {error}", flush=True)
            continue
        for name, call in calls.items():
            if not options.entrant or name in options.entrant:
                with suppress(Exception):
                    call()
        del contest, calls
        gc.collect()


def run_under_ncu(rows: Sequence[Row], options: argparse.Namespace) -> None:
    """What ncu looks at: every entrant once, when it is warm."""
    for number, row in enumerate(rows):
        try:
            contest = row.build(TorchInputs(row.dtype, options.seed))
        except Exception:
            traceback.print_exc()
            continue
        calls = {**({OURS: contest.ours} if contest.ours else {}), **contest.peers}
        calls |= {name: yardstick.call for name, yardstick in contest.yardsticks.items()}
        for index, call in enumerate(calls.values()):
            try:
                call()
                with ncu.region(f"{number}.{index}"):
                    call()
            except Exception:
                traceback.print_exc()


def show(row: Mapping[str, Any]) -> None:
    print(row["name"], f"— {row['failure']}" if "failure" in row else "", flush=True)
    for name, seen in row.get("entrants", {}).items():
        rate = next((f"{seen[unit]:8.1f} {unit}" for unit in ("tflops", "gbps") if unit in seen), "")
        ratio = row.get("ratios", {}).get(name)
        faster = (
            ""
            if ratio is None
            else f"  ours ×{ratio['ratio']:.3f} [{ratio['interval'][0]:.3f}–{ratio['interval'][1]:.3f}]"
        )
        error = "" if seen.get("error") is None else f"  error {seen['error']:.1e}"
        took = f"{seen['us']:10.2f} µs {rate}" if "us" in seen else f"failed: {seen['failure']}"
        print(f"  {name:>16} {took}{faster}{error}", flush=True)


class Results:
    """The files of a run that has a name."""

    def __init__(self, gpu: TorchGpu, options: argparse.Namespace, ceilings: Mapping[str, float]) -> None:
        self.about = {**environment(), **gpu_environment(), "seed": options.seed, "rounds": options.rounds}
        self.title = f"{gpu.properties.name}: {options.name}"
        self.path = options.folder / f"{gpu.properties.name.split()[-1].lower()}-{options.name}.json"
        self.named, self.ceilings = bool(options.name), ceilings
        self.earlier = records.read(self.path) if self.named and options.merge and self.path.exists() else None

    def write(self, found: Sequence[Mapping[str, Any]], texts: Mapping[str, str]) -> None:
        if not self.named:
            return
        means = records.means(found, declarations.MEANS.values())
        record = records.record(found, texts, self.about, ceilings=self.ceilings, means=means)
        if self.earlier is not None:
            record = records.merged(self.earlier, record, declarations.ROWS, declarations.MEANS.values())
        records.write(self.path, record)
        self.path.with_suffix(".md").write_text(tables.markdown(record, self.title), "utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", default=[], help="rows whose name contains this")
    parser.add_argument("--name", help="of the result files; without it nothing is written")
    parser.add_argument("--folder", type=Path, default=HERE / "results")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--seed", type=int, default=secrets.randbits(31))
    parser.add_argument("--energy", action="store_true", help="joules of a call: a second or two for each entrant")
    parser.add_argument("--profile", action="store_true", help="one more run, under ncu")
    parser.add_argument("--keep-ncu", type=Path, help="where to keep what ncu wrote")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="no row is begun later than that")
    parser.add_argument("--merge", action="store_true", help="keep rows of the result file that are not measured now")
    parser.add_argument("--no-compare", action="store_true", help="do not compile kernels again as they are declared")
    parser.add_argument("--after", help="the row behind which to begin, of those that are chosen")
    parser.add_argument("--prepare", action="store_true", help="call everything once, so that caches of compilers fill")
    parser.add_argument("--entrant", action="append", default=[], help="whom to call to prepare; all, if none is named")
    parser.add_argument("--under-ncu", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    rows = chosen(options.only, exactly=options.under_ncu)
    if options.after:
        rows = rows[[row.name for row in rows].index(options.after) + 1 :]
        if not rows:
            return FAILED
    if not rows:
        parser.error(f"no row is called so; there are {', '.join(declarations.ROWS)}")
    if options.under_ncu:
        run_under_ncu(rows, options)
        return 0
    if options.prepare:
        prepare(rows, options)
        return 0
    try:
        gpu = TorchGpu()
    except TesseraError as error:
        sys.exit(str(error))
    found: list[dict[str, Any]] = []
    texts: dict[str, str] = {}
    ceilings = {"copy_gbps": timing.copy_bandwidth() / 1e9}
    print(f"copy of 1 GiB: {ceilings['copy_gbps']:.0f} GB/s")
    results = Results(gpu, options, ceilings)
    began = time.monotonic()
    for number, row in enumerate(rows):
        if time.monotonic() - began > options.seconds:
            print(f"{len(rows) - number} rows are left out: there was no time for them")
            break
        one, ptx = measured(row, gpu, options)
        found.append(one)
        texts.update(ptx)
        show(one)
        # What was measured is kept, whatever happens to the rows that follow.
        results.write(found, texts)
        if gpu.is_lost():
            print("the driver has given up this process, after an illegal access of one of the entrants", flush=True)
            go_on(row, options)
            break
        gc.collect()
        gpu.release()
    means = records.means(found, declarations.MEANS.values())
    for one in means:
        print(f"mean of {one['name']}: ours ×{one['ratio'] or float('nan'):.3f} of {one['peer']}")
    if options.profile:
        profiled(rows, found, options)
        results.write(found, texts)
    compared = {} if options.no_compare else texts
    for name in (name for name, text in compared.items() if declarations.KERNELS[name]() != text):
        print(f"{name}: what ran is not what is declared: the result will count as out of date")
    if options.name:
        print(f"written: {results.path}")
    failed, missed = tables.failed(found), tables.missed(found, means)
    for line in (*failed, *missed):
        print(line)
    return FAILED if failed else MISSED if missed else 0


if __name__ == "__main__":
    sys.exit(main())
