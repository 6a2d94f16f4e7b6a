"""Recommendations tried on a sweep in which every alternative was measured: whether they help, and what is missed.

    python benchmarks/recommendations_of_sweep.py benchmarks/results/sweep-h200.json --name h200 --write

Each state of each problem is a case, and the other states of the problem, those that differ from it by one kind of
specialisation, are its alternatives: all of them were measured by `specialization_sweep.py`. Problems are left out
eighth by eighth: a model is fitted to the others, and recommends by what it knows from them, alone and with trials.
Trials are the first rounds of the sweep's measurements; whether something helps is judged by the rounds after those.
Copies and casts are not part of this: an operand that lies otherwise, or has another type, has been made so once.
`recommendations.py` has them.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from model_error import FOLDS, RESULTS, measured
from recommendations import HELPS, PLANTED
from specialization_sweep import State

from tessera.metatracing.analysis.recommendations import Recommender
from tessera.metatracing.analysis.specializations import RecommendationType, ShapeParams, SpecializationRecommendation
from tessera.metatracing.analysis.trials import measured_gain
from tessera.metatracing.models.kernel_times import Gain, KernelTimes, Measured
from tessera.metatracing.models.work_features import Machine

ALONE, TRIED = "by the model alone", "with trials"


class Row(NamedTuple):
    """A state, what was measured of it, and its trial."""

    state: State
    measured: Measured
    trial: Sequence[float]


class Outcome(NamedTuple):
    """What came of a state and a kind: the best measured ratio, those of what was recommended, and trials made."""

    kind: str
    best: float
    made: dict[str, float | None]
    trials: int


def kind_of(now: Row, then: Row, machine: Machine) -> RecommendationType | None:
    """The one kind of specialisation by which two states differ; None where it is none, or more than one."""
    a, b = now.state, then.state
    differs = {
        name for name in ("dtype", "layout", "block", "warps", "assumed") if getattr(a, name) != getattr(b, name)
    }
    families = [one.measured.program.family(machine) for one in (now, then)]
    if differs == {"assumed"} and b.assumed:
        return RecommendationType.SHAPE_SPECIALIZATION
    if differs == {"dtype"} and (a.dtype, b.dtype) == ("f32", "bf16"):
        return RecommendationType.DTYPE_SPECIALIZATION
    if differs == {"layout"} and b.layout == "rows":
        return RecommendationType.MEMORY_LAYOUT_SPECIALIZATION
    if differs and differs <= {"block", "warps"}:
        if families[0] == families[1]:
            is_block = differs == {"block"} or families[0].endswith("rows")
            return RecommendationType.TILE_SIZE_SPECIALIZATION if is_block else None
        return RecommendationType.INSTRUCTION_SPECIALIZATION if "warp groups" in families[1] else None
    return None


class Chosen(NamedTuple):
    """Speeds over that of the best block of a problem: of the block that a model chooses, and of the kernel's own."""

    kernel: str
    models: float
    own: float | None


def chosen_block(times: KernelTimes, several: Sequence[Row]) -> Chosen | None:
    """The choice among the blocks of a problem that are measured with sizes open, in the type that most are."""
    first = several[0].state
    alike = replace(first, dtype="f32" if times.machine.kind == "cpu" else "bf16", layout="rows", assumed=False)
    found = [one for one in several if replace(one.state, block=alike.block, warps=alike.warps) == alike]
    if len(found) < 2:
        return None
    best = min(one.measured.seconds for one in found)
    choice = min(found, key=lambda one: times.predict(one.measured.program).seconds)
    own = next((best / one.measured.seconds for one in found if one.state.schedule() is None), None)
    return Chosen(first.kernel, best / choice.measured.seconds, own)


def cases(machine: Machine, rows: list[Row]) -> Iterator[tuple[Chosen | None, list[list[Outcome]]]]:
    """Every problem with the block that is chosen for it, and of each of its states what came of it."""
    groups: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.measured.group].append(row)
    names = list(groups)
    np.random.default_rng(1).shuffle(names)  # pyright: ignore[reportArgumentType]
    for fold in range(FOLDS):
        out = set(names[fold::FOLDS])
        times = KernelTimes.calibrated(machine, [one.measured for one in rows if one.measured.group not in out])
        recommender = Recommender(times)
        for name in names[fold::FOLDS]:
            known = [one for one in groups[name] if times.knows(one.measured.program)]
            yield chosen_block(times, known), [list(outcomes(recommender, now, groups[name])) for now in known]


def outcomes(recommender: Recommender, now: Row, several: Sequence[Row]) -> Iterator[Outcome]:
    """What a recommender makes of one state, kind by kind."""
    times, program = recommender.times, now.measured.program
    found: dict[RecommendationType, list[tuple[SpecializationRecommendation, Gain]]] = defaultdict(list)
    for index, then in enumerate(several):
        kind = kind_of(now, then, times.machine)
        if kind is None or not times.knows(then.measured.program):
            continue
        is_shape = kind is RecommendationType.SHAPE_SPECIALIZATION
        gain = times.gain(program, replace(program, assumed=True) if is_shape else then.measured.program)
        if kind is RecommendationType.TILE_SIZE_SPECIALIZATION and not recommender.knows_blocks(program):
            gain = Gain(gain.ratio, 0.0, float("inf"), 0.5)
        # Its index among the rows stands for what would have to be done.
        params = ShapeParams((str(index),))
        found[kind].append((SpecializationRecommendation(kind, "", gain.ratio - 1, 1, params, gain.confidence), gain))

    def then_of(made: SpecializationRecommendation) -> Row:
        assert isinstance(made.params, ShapeParams)
        return several[int(made.params.words[0])]

    def helped(made: list[SpecializationRecommendation]) -> float | None:
        return now.measured.seconds / then_of(made[0]).measured.seconds if made else None

    for kind, candidates in found.items():
        best = max(helped([made]) or 0.0 for made, _ in candidates)
        chosen = recommender.shortlist(candidates)
        tried = [(one, measured_gain(now.trial, then_of(one).trial)) for one in chosen]
        made = {ALONE: helped(recommender.pick(candidates)), TRIED: helped(recommender.confirmed(tried))}
        yield Outcome(kind.value, best, made, len(chosen))


def report(machine: Machine, rows: list[Row], name: str) -> tuple[str, bool]:
    """The tables by kind, and whether both bars hold over all, with trials."""
    problems = list(cases(machine, rows))
    everything = [outcome for _, states in problems for several in states for outcome in several]
    possible, trials = len(everything), sum(one.trials for one in everything)
    words = (
        f"{len(rows)} states on {name}, with all that was measured of each: {possible} times something of a kind could "
        f"be done. Helped: at least {HELPS - 1:.0%} faster. An opportunity: the best of a kind was at least "
        f"{PLANTED - 1:.0%} faster. The models had not seen the problems. There were {trials} "
        "trials, and judged is by other runs than theirs."
    )
    lines, holds = [words], False
    for way in (TRIED, ALONE):
        lines += ["", f"Recommended {way}:", ""]
        lines += ["| kind | recommended | helped | | opportunities | found | |", "|---|---:|---:|---:|---:|---:|---:|"]
        counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
        for one in everything:
            ratio, there = one.made[way], one.best >= PLANTED
            for mine in (counts[one.kind], counts["all"]):
                mine[0] += ratio is not None
                mine[1] += ratio is not None and ratio >= HELPS
                mine[2] += there
                mine[3] += there and ratio is not None
        for kind, (made, helped, there, hits) in sorted(counts.items(), key=lambda one: one[0] == "all"):
            shares = [f"{part / whole:.0%}" if whole else "" for part, whole in ((helped, made), (hits, there))]
            lines.append(f"| {kind} | {made} | {helped} | {shares[0]} | {there} | {hits} | {shares[1]} |")
        if way is TRIED:
            made, helped, there, hits = counts["all"]
            holds = helped >= 0.9 * made and hits >= 0.8 * there
    lines += ["", "Speed of the block that the model chooses, and of the kernel's own, over that of the best:", ""]
    lines += [
        "| kernel | problems | the model's choice | worst | the kernel's own | worst |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for kernel in dict.fromkeys(one.kernel for one, _ in problems if one is not None):
        mine = [one for one, _ in problems if one is not None and one.kernel == kernel]
        speeds = [[one.models for one in mine], [one.own for one in mine if one.own is not None]]
        shown = [f"{np.exp(np.mean(np.log(some))):.3f} | {min(some):.3f}" if some else " | " for some in speeds]
        lines.append(f"| {kernel} | {len(mine)} | {' | '.join(shown)} |")
    return "\n".join(lines), holds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sweep", type=Path)
    parser.add_argument("--name", required=True)
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args()
    machine, states, found, trials = measured(chosen.sweep, chosen.name)
    text, holds = report(machine, list(map(Row, states, found, trials)), chosen.name)
    print(text)
    if chosen.write:
        head = f"# Recommendations on the sweep of {chosen.name}\n\nMade by `benchmarks/recommendations_of_sweep.py`."
        page = f"{head}\n\n{text}\n"
        (RESULTS / f"recommendations-of-sweep-{chosen.name}.md").write_text(page, encoding="utf-8")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
