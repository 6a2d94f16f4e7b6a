"""Whether recommendations help, and whether opportunities are found: every alternative of every case is measured.

    python benchmarks/recommendations.py --device cuda --write      on an H200
    python benchmarks/recommendations.py --device cpu --write       on an ARM server

Cases are kernels with sizes that the models were not fitted to, in a state in which something could be better: a block
that is too small, sizes that are not assumed, wider elements than asked for, columns where rows are read, dots of
single warps. Recommendations are made as `Recommender` makes them with trials, and by the model alone. After that all
that could have been recommended is measured, interleaved, by other runs than those of the trials: each kind of
specialisation, with the copies and casts that it makes at every call.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from specialization_sweep import KERNELS, SWEEPS, Arrays, State

import tessera as ts
from tessera import Schedule, subprocesses
from tessera.metatracing.analysis.recommendations import Recommender
from tessera.metatracing.analysis.specializations import (
    DtypeParams,
    LayoutParams,
    RecommendationType,
    ShapeParams,
    SpecializationRecommendation,
)
from tessera.metatracing.analysis.trials import InterleavedRuns, Trial, measured_gain, private_arguments, timed_on
from tessera.metatracing.clients.kernels import KernelClient
from tessera.metatracing.clients.worker import build
from tessera.metatracing.models.kernel_times import KernelTimes, shipped
from tessera.metatracing.models.situation import Situation
from tessera.runtime.device.device import Device
from tessera.tiers.client import TierLevel
from tessera.tiers.records import ExecutionTier
from tessera.tile.calls.function import Kernel

MODELS = {"cuda": "h200", "cpu": "cpu-aarch64"}
HELPS, PLANTED = 1.02, 1.05
"""How much faster something has to be to have helped; and how much the best of a kind, to have been an opportunity."""
TOLERANCE = 4e-3
JUDGED = 11
"""Rounds by which recommendations are judged."""
ALONE, TRIED = "by the model alone", "with trials"
RESULTS = Path(__file__).parent / "results"
T = RecommendationType


@dataclass(frozen=True)
class Case:
    """A state, and what was planted in it; None where it is as good as it gets, for all that is known."""

    state: State
    planted: RecommendationType | None

    @property
    def name(self) -> str:
        one = self.state
        cut = "own" if one.block is None else "×".join(map(str, one.block))
        warps = f", {one.warps} warps" if one.warps else ""
        causal = " causal" if one.causal else ""
        return f"{one.kernel}{causal} {'×'.join(map(str, one.sizes))} {one.dtype}, {one.layout}, block {cut}{warps}"


def gpu_cases() -> Iterator[Case]:
    heads = [
        (1, 6, 640, 64),
        (2, 12, 1280, 64),
        (3, 8, 900, 128),
        (1, 24, 3072, 128),
        (4, 8, 768, 64),
        (2, 10, 1792, 128),
    ]
    for index, sizes in enumerate(heads):
        start = State("attention", sizes, causal=index % 2 == 1)
        yield Case(replace(start, block=(64, 64)), T.TILE_SIZE_SPECIALIZATION)
        yield Case(replace(start, block=(64, 64), warps=8), T.INSTRUCTION_SPECIALIZATION)
        yield Case(start, T.SHAPE_SPECIALIZATION)
        if index % 2:
            yield Case(replace(start, layout="columns"), T.MEMORY_LAYOUT_SPECIALIZATION)
            yield Case(replace(start, dtype="f32"), T.DTYPE_SPECIALIZATION)
    for sizes in ((1280, 1280, 1280), (900, 700, 2048), (3584, 1792, 512), (1536, 2560, 1280)):
        start = State("gemm", sizes)
        yield Case(replace(start, block=(64, 64, 64)), T.TILE_SIZE_SPECIALIZATION)
        yield Case(replace(start, block=(64, 64, 32), warps=2), T.INSTRUCTION_SPECIALIZATION)
        yield Case(replace(start, block=(128, 128, 64), layout="columns"), T.MEMORY_LAYOUT_SPECIALIZATION)
        yield Case(replace(start, block=(128, 128, 64), dtype="f32"), T.DTYPE_SPECIALIZATION)
    for sizes in ((12000, 768), (24000, 1536), (6000, 2304)):
        start = State("softmax", sizes)
        yield Case(start, None)
        yield Case(replace(start, layout="columns"), T.MEMORY_LAYOUT_SPECIALIZATION)
        yield Case(replace(start, kernel="layernorm", layout="columns"), T.MEMORY_LAYOUT_SPECIALIZATION)


def cpu_cases() -> Iterator[Case]:
    for index, sizes in enumerate(((1, 4, 200, 64), (2, 2, 480, 32), (1, 6, 320, 64), (3, 4, 288, 32))):
        start = State("attention", sizes, causal=index % 2 == 1, dtype="f32")
        yield Case(start, None)
        yield Case(replace(start, block=(16, 16)), T.TILE_SIZE_SPECIALIZATION)
        yield Case(replace(start, layout="columns"), T.MEMORY_LAYOUT_SPECIALIZATION)
    for sizes in ((192, 192, 192), (400, 200, 320), (96, 768, 256), (320, 480, 160)):
        start = State("gemm", sizes, dtype="f32")
        yield Case(replace(start, block=(64, 64, 64)), None)
        yield Case(replace(start, block=(16, 16, 16)), T.TILE_SIZE_SPECIALIZATION)
        yield Case(replace(start, block=(32, 256, 64)), T.TILE_SIZE_SPECIALIZATION)
        yield Case(replace(start, block=(32, 32, 64), layout="columns"), T.MEMORY_LAYOUT_SPECIALIZATION)
    for sizes in ((700, 900), (1500, 300), (256, 2500), (2200, 448)):
        start = State("softmax", sizes, dtype="f32")
        yield Case(start, None)
        yield Case(replace(start, layout="columns"), T.MEMORY_LAYOUT_SPECIALIZATION)
        yield Case(replace(start, kernel="layernorm", block=(256, 64)), T.TILE_SIZE_SPECIALIZATION)
        yield Case(replace(start, kernel="layernorm", layout="columns"), T.MEMORY_LAYOUT_SPECIALIZATION)


def situation(case: Case, times: KernelTimes, arrays: Arrays) -> Situation:
    """A case with its arrays."""
    state = case.state
    arrays.start()
    args, static = state.arguments(arrays)

    def under(schedule: Schedule) -> Kernel:
        m, n, _ = state.sizes
        assert schedule.block is not None
        made = KERNELS["gemm"].with_schedule(schedule)
        return made[-(-m // schedule.block[0]), -(-n // schedule.block[1])]

    tolerance = TOLERANCE if state.dtype == "f32" else None
    form = under if state.kernel == "gemm" else None
    return Situation(state.form(), args, static, times.machine, state.assumed, tolerance, form)


def requests(here: Situation, alternatives: list[SpecializationRecommendation]) -> Iterator[bytes]:
    """What has to be compiled: the case as it is, and every alternative."""
    tier2, tier3 = ExecutionTier.TIER2_STANDARD, ExecutionTier.TIER3_SPECIALIZED
    wanted: list[tuple[Kernel, tuple[Any, ...], TierLevel]] = [(here.kernel, here.args, TierLevel(tier2))]
    for one in alternatives:
        args, kernel, level = here.args, here.kernel, TierLevel(tier2)
        if isinstance(one.params, ShapeParams):
            level = TierLevel(tier3, one.params.words)
        elif isinstance(one.params, LayoutParams):
            indices = one.params.arguments
            args = tuple([value.copy() if index in indices else value for index, value in enumerate(args)])
        elif isinstance(one.params, DtypeParams):
            dtype = one.params.specialized_dtype
            args = tuple([value.to(dtype) if isinstance(value, ts.Tensor) else value for value in args])
        else:
            kernel = here.with_schedule(one.params.schedule)
        wanted.append((kernel, args, level))
    for kernel, args, level in wanted:
        client = KernelClient(kernel)
        call = client.call(args, here.static)
        assert call is not None
        if (made := client.request(call, [level])) is not None:
            yield made


def copies(arrays: Arrays, interleaved: InterleavedRuns) -> tuple[float, float, float]:
    """What copies and casts take here: always, and for each byte, of elements that lie together and that lie apart."""
    arrays.start()
    small, large = arrays((64, 64), ts.f32), arrays((1000, 1500), ts.f32)
    runs = [small.mT.copy, lambda: small.to(ts.bf16), lambda: large.to(ts.bf16), large.mT.copy]
    copied, cast, near, far = (statistics.median(one) for one in interleaved.measure(runs, 5))
    return max(copied, cast), near / large.nbytes, far / large.nbytes


@dataclass
class Outcome:
    """What came of a case."""

    case: Case
    rows: list[dict[str, Any]]
    """Every alternative: what was expected, what a trial gave where there was one, and what was measured."""
    seconds: float

    def made(self, way: str) -> dict[str, dict[str, Any]]:
        """What was recommended, by kind."""
        return {row["kind"]: row for row in self.rows if row[way]}

    @property
    def best(self) -> dict[str, float]:
        """The best measured ratio of each kind."""
        found: dict[str, float] = {}
        for row in self.rows:
            found[row["kind"]] = max(row["ratio"], found.get(row["kind"], 0.0))
        return found


def tried(case: Case, here: Situation, recommender: Recommender, interleaved: InterleavedRuns) -> Outcome:
    """Recommends, then measures a case and all its alternatives."""
    assert recommender.trial is not None
    candidates = list(recommender.candidates(here, here.program()))
    alone = recommender.pick(candidates)
    chosen = recommender.shortlist(candidates)
    gains = recommender.trial(here, chosen)
    trials = dict(zip(map(id, chosen), gains, strict=True))
    confirmed = [one.params for one in recommender.confirmed(zip(chosen, gains, strict=True))]
    args = private_arguments(here)
    assert args is not None
    running: list[tuple[SpecializationRecommendation, Callable[[], Any]]] = []
    for one, _ in candidates:
        special = one.specialized(here.kernel, here.under)

        def run(special: Callable[..., Any] = special) -> Any:
            return special(*args, **here.static)

        try:
            run()
        except ts.TesseraError:
            continue
        running.append((one, run))
    now, *others = interleaved.measure(
        [lambda: here.kernel(*args, **here.static), *(run for _, run in running)], JUDGED
    )
    rows: list[dict[str, Any]] = []
    for (one, _), taken in zip(running, others, strict=True):
        trial = trials.get(id(one))
        rows.append(
            {
                "kind": one.recommendation_type.value,
                "what": one.description,
                "expected": 1 + one.expected_improvement,
                "interval": [1 + end for end in one.interval],
                "confidence": one.confidence,
                "trial": None if trial is None else [trial.ratio, trial.low, trial.high],
                "ratio": measured_gain(now, taken).ratio,
                ALONE: any(one is other for other in alone),
                TRIED: one.params in confirmed,
            }
        )
    return Outcome(case, rows, statistics.median(now))


def counted(outcomes: list[Outcome], way: str) -> tuple[str, bool]:
    """In words how many recommendations helped and how many opportunities were found; and whether both bars hold."""
    made = [row for one in outcomes for row in one.made(way).values()]
    helped = sum(row["ratio"] >= HELPS for row in made)
    kinds: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for one in outcomes:
        kind = None if one.case.planted is None else one.case.planted.value
        if kind is not None and one.best.get(kind, 0.0) >= PLANTED:
            kinds[kind][0] += kind in one.made(way)
            kinds[kind][1] += 1
    found, planted = (sum(mine[index] for mine in kinds.values()) for index in range(2))
    share, recall = helped / max(1, len(made)), found / max(1, planted)
    by_kind = ", ".join(f"{kind} {hits} of {count}" for kind, (hits, count) in sorted(kinds.items()))
    words = (
        f"Of {len(made)} recommendations {way} {helped} made the call at least {HELPS - 1:.0%} faster: {share:.0%}. Of "
        f"{planted} planted opportunities, those whose best alternative was at least {PLANTED - 1:.0%} faster, {found} "
        f"were found: {recall:.0%} ({by_kind})."
    )
    return words, share >= 0.9 and recall >= 0.8


def report(outcomes: list[Outcome], device: str) -> tuple[str, bool]:
    """The table, and whether both bars hold, with trials."""
    lines = [
        "| case | planted | with trials: measured (trial) | by the model alone: measured (expected) | best of kind | |",
        "|---|---|---|---|---:|---|",
    ]
    for one in outcomes:
        told = [f"{kind} {row['ratio']:.2f} ({row['trial'][0]:.2f})" for kind, row in one.made(TRIED).items()]
        alone = [f"{kind} {row['ratio']:.2f} ({row['expected']:.2f})" for kind, row in one.made(ALONE).items()]
        kind = None if one.case.planted is None else one.case.planted.value
        best = one.best.get(kind, 0.0) if kind is not None else 0.0
        word = ("found" if kind in one.made(TRIED) else "missed") if best >= PLANTED else ""
        cells = [one.case.name, kind or "nothing", ", ".join(told) or "nothing", ", ".join(alone) or "nothing"]
        lines.append(f"| {' | '.join(cells)} | {f'{best:.2f}' if best else ''} | {word} |")
    tried_words, holds = counted(outcomes, TRIED)
    alone_words, _ = counted(outcomes, ALONE)
    alternatives = sum(len(one.rows) for one in outcomes)
    trials = sum(row["trial"] is not None for one in outcomes for row in one.rows)
    words = (
        f"{len(outcomes)} cases on {device}; the model was fitted to other problems. {alternatives} alternatives were "
        f"measured, {trials} of them were tried before by the recommender. "
    )
    return "\n".join([words + tried_words, "", alone_words, "", *lines]), holds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cpu")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--compile-only", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--out", type=Path, help="a folder for the table instead of the results")
    chosen = parser.parse_args()
    times = shipped(MODELS[chosen.device])
    assert times is not None
    recommender, arrays, began = Recommender(times), Arrays(chosen.device), time.perf_counter()
    cases = list(gpu_cases() if chosen.device == "cuda" else cpu_cases())
    swept = {one.problem for one in SWEEPS[chosen.device].states()}
    assert not swept & {one.state.problem for one in cases}, "the model was fitted to some of these"
    if chosen.processes > 1 or chosen.compile_only:
        wanted: dict[bytes, None] = {}
        for case in cases:
            here = situation(case, times, arrays)
            everything = [one for one, _ in recommender.candidates(here, here.program())]
            wanted |= dict.fromkeys(requests(here, everything))
        print(f"{len(wanted)} programs to compile, {time.perf_counter() - began:.1f} s", flush=True)
        with (
            subprocesses.spawning(),
            ProcessPoolExecutor(chosen.processes, multiprocessing.get_context("spawn")) as pool,
        ):
            for answer in pool.map(build, wanted):
                if (wrong := json.loads(answer)) != [None]:
                    print("not compiled:", str(wrong)[:120], flush=True)
        print(f"compiled, {time.perf_counter() - began:.1f} s", flush=True)
        if chosen.compile_only:
            return 0
    interleaved = InterleavedRuns(timed_on(Device("cuda", 0) if chosen.device == "cuda" else None), 2e-3)
    times = replace(times, copies=copies(arrays, interleaved))
    print("copies:", times.copies, flush=True)
    recommender = Recommender(times, trial=Trial())
    outcomes: list[Outcome] = []
    for case in cases:
        outcomes.append(tried(case, situation(case, times, arrays), recommender, interleaved))
        ratios = {kind: round(row["ratio"], 3) for kind, row in outcomes[-1].made(TRIED).items()}
        print(case.name, ratios, outcomes[-1].best, f"{time.perf_counter() - began:.1f} s", flush=True)
    text, holds = report(outcomes, MODELS[chosen.device])
    print(text)
    print(f"{time.perf_counter() - began:.1f} s")
    if chosen.write or chosen.out is not None:
        folder = RESULTS if chosen.out is None else chosen.out
        page = f"# Recommendations on {MODELS[chosen.device]}\n\nMade by `benchmarks/recommendations.py`.\n\n{text}\n"
        name = f"recommendations-{MODELS[chosen.device]}"
        (folder / f"{name}.md").write_text(page, encoding="utf-8")
        raw = [{"case": one.case.name, "seconds": one.seconds, "rows": one.rows} for one in outcomes]
        (folder / f"{name}.json").write_text(json.dumps({"cases": raw}), encoding="utf-8")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
