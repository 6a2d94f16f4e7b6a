"""Whether recommendations help, and whether opportunities are found: every alternative of every case is measured.

    python benchmarks/recommendations.py --device cuda --write      on an H200
    python benchmarks/recommendations.py --device cpu --write       on an ARM server

Cases are kernels with sizes that the models were not fitted to, in a state in which something could be better: a block
that is too small, sizes that are not assumed, wider elements than asked for, columns where rows are read, products of
single warps. Recommendations are made from the model alone. Then all that could have been recommended is measured: each
kind of specialisation, with the copies and casts that it makes at every call.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from specialization_sweep import KERNELS, Arrays, State, cpu_timed, gpu_timer

import tessera as ts
from tessera import Schedule
from tessera.kernels.function import Kernel
from tessera.metatracing.analysis.recommendations import (
    DtypeParams,
    LayoutParams,
    RecommendationType,
    Recommender,
    ShapeParams,
    SpecializationRecommendation,
)
from tessera.metatracing.building import build
from tessera.metatracing.client import Level
from tessera.metatracing.kernel_client import KernelClient
from tessera.metatracing.models.kernel_times import KernelTimes, shipped
from tessera.metatracing.records import ExecutionTier
from tessera.metatracing.situation import Situation

MODELS = {"cuda": "h200", "cpu": "cpu-aarch64"}
HELPS, PLANTED = 1.02, 1.05
"""How much faster something has to be to have helped; and how much the best of a kind, to have been an opportunity."""
TOLERANCE = 4e-3
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
    heads = [(1, 6, 640, 64), (2, 12, 1280, 64), (3, 8, 900, 128), (1, 24, 3072, 128), (4, 8, 768, 64)]
    for place, sizes in enumerate(heads):
        start = State("attention", sizes, causal=place % 2 == 1)
        yield Case(replace(start, block=(64, 64)), T.TILE_SIZE_SPECIALIZATION)
        yield Case(replace(start, block=(64, 64), warps=8), T.INSTRUCTION_SPECIALIZATION)
        yield Case(start, T.SHAPE_SPECIALIZATION)
        if place % 2:
            yield Case(replace(start, layout="columns"), T.MEMORY_LAYOUT_SPECIALIZATION)
            yield Case(replace(start, dtype="f32"), T.DTYPE_SPECIALIZATION)
    for sizes in ((1280, 1280, 1280), (900, 700, 2048), (3584, 1792, 512)):
        start = State("gemm", sizes)
        yield Case(replace(start, block=(64, 64, 64)), T.TILE_SIZE_SPECIALIZATION)
        yield Case(replace(start, block=(64, 64, 32), warps=2), T.INSTRUCTION_SPECIALIZATION)
        yield Case(replace(start, block=(128, 128, 64), layout="columns"), T.MEMORY_LAYOUT_SPECIALIZATION)
        yield Case(replace(start, block=(128, 128, 64), dtype="f32"), T.DTYPE_SPECIALIZATION)
    for sizes in ((12000, 768), (24000, 1536)):
        start = State("softmax", sizes)
        yield Case(start, None)
        yield Case(replace(start, layout="columns"), T.MEMORY_LAYOUT_SPECIALIZATION)
        yield Case(replace(start, kernel="layernorm", layout="columns"), T.MEMORY_LAYOUT_SPECIALIZATION)


def cpu_cases() -> Iterator[Case]:
    for place, sizes in enumerate(((1, 4, 200, 64), (2, 2, 480, 32), (1, 6, 320, 64))):
        start = State("attention", sizes, causal=place % 2 == 1, dtype="f32")
        yield Case(start, None)
        yield Case(replace(start, block=(16, 16)), T.TILE_SIZE_SPECIALIZATION)
        yield Case(replace(start, layout="columns"), T.MEMORY_LAYOUT_SPECIALIZATION)
    for sizes in ((192, 192, 192), (400, 200, 320), (96, 768, 256)):
        start = State("gemm", sizes, dtype="f32")
        yield Case(replace(start, block=(64, 64, 64)), None)
        yield Case(replace(start, block=(16, 16, 16)), T.TILE_SIZE_SPECIALIZATION)
        yield Case(replace(start, block=(32, 256, 64)), T.TILE_SIZE_SPECIALIZATION)
        yield Case(replace(start, block=(32, 32, 64), layout="columns"), T.MEMORY_LAYOUT_SPECIALIZATION)
    for sizes in ((700, 900), (1500, 300), (256, 2500)):
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
    wanted: list[tuple[Kernel, tuple[Any, ...], Level]] = [(here.kernel, here.args, Level(tier2))]
    for one in alternatives:
        args, kernel, level = here.args, here.kernel, Level(tier2)
        if isinstance(one.params, ShapeParams):
            level = Level(tier3, one.params.words)
        elif isinstance(one.params, LayoutParams):
            places = one.params.arguments
            args = tuple([value.copy() if place in places else value for place, value in enumerate(args)])
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


def copies(arrays: Arrays, timed: Callable[[Callable[[], Any]], float]) -> tuple[float, float, float]:
    """What copies and casts take here: always, and for each byte, of elements that lie together and that lie apart."""
    arrays.start()
    small, large = arrays((64, 64), ts.f32), arrays((1000, 1500), ts.f32)
    always = max(timed(small.mT.copy), timed(lambda: small.to(ts.bf16)))
    near, far = (timed(work) / large.nbytes for work in (lambda: large.to(ts.bf16), large.mT.copy))
    return always, near, far


@dataclass
class Outcome:
    """What came of a case."""

    case: Case
    made: dict[str, float]
    """Measured ratios of what was recommended, by kind."""
    expected: dict[str, float]
    best: dict[str, float]
    """The best measured ratio of each kind."""
    seconds: float


def tried(
    case: Case, here: Situation, recommender: Recommender, timed: Callable[[Callable[[], Any]], float]
) -> Outcome:
    """Measures a case and all its alternatives."""

    def as_it_is() -> Any:
        return here.kernel(*here.args, **here.static)

    now = timed(as_it_is)
    candidates = list(recommender.candidates(here, here.program()))
    made = {one.recommendation_type: one for one in recommender.pick(candidates)}
    outcome = Outcome(case, {}, {}, {}, now)
    for one, _ in candidates:
        try:
            special = one.specialized(here.kernel, here.under)
            took = timed(lambda special=special: special(*here.args, **here.static))
            # A machine that others use is not the same from one second to the next.
            ratio = (now if here.machine.kind == "cuda" else timed(as_it_is)) / took
        except ts.TesseraError:
            continue
        kind = one.recommendation_type
        outcome.best[kind.value] = max(ratio, outcome.best.get(kind.value, 0.0))
        if kind in made and made[kind].params == one.params:
            outcome.made[kind.value], outcome.expected[kind.value] = ratio, 1 + one.expected_improvement
    return outcome


def report(outcomes: list[Outcome], device: str) -> tuple[str, bool]:
    """The table, and whether both bars hold."""
    lines = ["| case | planted | recommended: measured (expected) | best of that kind | |", "|---|---|---|---:|---|"]
    helped = recommended = found = planted = 0
    kinds: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for one in outcomes:
        told = [f"{kind} {ratio:.2f} ({one.expected[kind]:.2f})" for kind, ratio in one.made.items()]
        recommended += len(one.made)
        helped += sum(ratio >= HELPS for ratio in one.made.values())
        kind = None if one.case.planted is None else one.case.planted.value
        best = one.best.get(kind, 0.0) if kind is not None else 0.0
        word = ""
        if kind is not None and best >= PLANTED:
            planted += 1
            found += kind in one.made
            kinds[kind][0] += kind in one.made
            kinds[kind][1] += 1
            word = "found" if kind in one.made else "missed"
        shown = f"{best:.2f}" if best else ""
        lines.append(f"| {one.case.name} | {kind or 'nothing'} | {', '.join(told) or 'nothing'} | {shown} | {word} |")
    share, recall = helped / max(1, recommended), found / max(1, planted)
    by_kind = ", ".join(f"{kind} {hits} of {count}" for kind, (hits, count) in sorted(kinds.items()))
    words = (
        f"{len(outcomes)} cases on {device}. Of {recommended} recommendations {helped} made the call at least "
        f"{HELPS - 1:.0%} faster: {share:.0%}. Of {planted} planted opportunities, those whose best alternative was at "
        f"least {PLANTED - 1:.0%} faster, {found} were found: {recall:.0%} ({by_kind})."
    )
    return "\n".join([words, "", *lines]), share >= 0.9 and recall >= 0.8


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
    if chosen.processes > 1 or chosen.compile_only:
        wanted: dict[bytes, None] = {}
        for case in cases:
            here = situation(case, times, arrays)
            everything = [one for one, _ in recommender.candidates(here, here.program())]
            wanted |= dict.fromkeys(requests(here, everything))
        print(f"{len(wanted)} programs to compile, {time.perf_counter() - began:.1f} s", flush=True)
        with ProcessPoolExecutor(chosen.processes, multiprocessing.get_context("spawn")) as pool:
            for answer in pool.map(build, wanted):
                if (wrong := json.loads(answer)) != [None]:
                    print("not compiled:", str(wrong)[:120], flush=True)
        print(f"compiled, {time.perf_counter() - began:.1f} s", flush=True)
        if chosen.compile_only:
            return 0
    timed = gpu_timer() if chosen.device == "cuda" else cpu_timed
    times = replace(times, copies=copies(arrays, timed))
    print("copies:", times.copies, flush=True)
    recommender = Recommender(times)
    outcomes: list[Outcome] = []
    for case in cases:
        outcomes.append(tried(case, situation(case, times, arrays), recommender, timed))
        print(case.name, outcomes[-1].made, outcomes[-1].best, flush=True)
    text, holds = report(outcomes, MODELS[chosen.device])
    print(text)
    print(f"{time.perf_counter() - began:.1f} s")
    if chosen.write or chosen.out is not None:
        folder = RESULTS if chosen.out is None else chosen.out
        page = f"# Recommendations on {MODELS[chosen.device]}\n\nMade by `benchmarks/recommendations.py`.\n\n{text}\n"
        (folder / f"recommendations-{MODELS[chosen.device]}.md").write_text(page, encoding="utf-8")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
