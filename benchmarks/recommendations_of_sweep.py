"""Recommendations tried on a sweep in which every alternative was measured: whether they help, and what is missed.

    python benchmarks/recommendations_of_sweep.py benchmarks/results/sweep-h200.json --name h200 --write

Each state of each problem is a case, and the other states of the problem, those that differ from it by one kind of
specialisation, are its alternatives: all of them were measured by `specialization_sweep.py`. Problems are left out
eighth by eighth: a model is fitted to the others, and recommends by what it knows from them. Copies and casts are not
part of this: an operand that lies otherwise, or has another type, has been made so once. `recommendations.py` has them.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from model_error import FOLDS, RESULTS, measured
from recommendations import HELPS, PLANTED
from specialization_sweep import State

from tessera.metatracing.analysis.recommendations import SURE, WORTH
from tessera.metatracing.models.amounts import Machine
from tessera.metatracing.models.kernel_times import KernelTimes, Measured

Row = tuple[State, Measured]


def kind_of(now: Row, then: Row, machine: Machine) -> str | None:
    """The one kind of specialisation by which two states differ; None where it is none, or more than one."""
    a, b = now[0], then[0]
    differs = {
        name for name in ("dtype", "layout", "block", "warps", "assumed") if getattr(a, name) != getattr(b, name)
    }
    families = [one[1].program.family(machine) for one in (now, then)]
    if differs == {"assumed"} and b.assumed:
        return "shape"
    if differs == {"dtype"} and (a.dtype, b.dtype) == ("f32", "bf16"):
        return "dtype"
    if differs == {"layout"} and b.layout == "rows":
        return "layout"
    if differs and differs <= {"block", "warps"}:
        if families[0] == families[1]:
            return "tile" if differs == {"block"} or families[0].endswith("rows") else None
        return "instruction" if "agents" in families[1] else None
    return None


def cases(machine: Machine, rows: list[Row]) -> Iterator[tuple[State, dict[str, list[tuple[float, float, float]]]]]:
    """Every state with its alternatives by kind: what the model expects, how sure it is, and what was measured."""
    groups: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row[1].group].append(row)
    names = list(groups)
    np.random.default_rng(1).shuffle(names)  # pyright: ignore[reportArgumentType]
    for fold in range(FOLDS):
        out = set(names[fold::FOLDS])
        times = KernelTimes.calibrated(machine, [one for _, one in rows if one.group not in out])
        for name in names[fold::FOLDS]:
            for now in groups[name]:
                found: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
                for then in groups[name]:
                    kind = kind_of(now, then, machine)
                    if kind is None or not (times.knows(now[1].program) and times.knows(then[1].program)):
                        continue
                    program = then[1].program if kind != "shape" else _assuming(now[1])
                    gain = times.gain(now[1].program, program)
                    found[kind].append((gain.ratio, gain.confidence, now[1].seconds / then[1].seconds))
                yield now[0], found


def _assuming(now: Measured) -> Any:
    from dataclasses import replace

    return replace(now.program, assumed=True)


def report(machine: Machine, rows: list[Row], name: str) -> tuple[str, bool]:
    """The table by kind, and whether both bars hold over all."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    total = 0
    for _, found in cases(machine, rows):
        total += 1
        for kind, several in found.items():
            sure = [one for one in several if one[0] >= WORTH and one[1] >= SURE[machine.kind]]
            made = max(sure, default=None)
            there = max(one[2] for one in several) >= PLANTED
            for mine in (counts[kind], counts["all"]):
                mine[0] += made is not None
                mine[1] += made is not None and made[2] >= HELPS
                mine[2] += there
                mine[3] += there and made is not None
    lines = ["| kind | recommended | helped | | opportunities | found | |", "|---|---:|---:|---:|---:|---:|---:|"]
    for kind, (made, helped, there, hits) in sorted(counts.items(), key=lambda one: one[0] == "all"):
        shares = [f"{part / whole:.0%}" if whole else "" for part, whole in ((helped, made), (hits, there))]
        lines.append(f"| {kind} | {made} | {helped} | {shares[0]} | {there} | {hits} | {shares[1]} |")
    made, helped, there, hits = counts["all"]
    words = (
        f"{total} states on {name}, with all that was measured of each. Helped: at least {HELPS - 1:.0%} faster. An "
        f"opportunity: the best of a kind was at least {PLANTED - 1:.0%} faster."
    )
    return "\n".join([words, "", *lines]), helped >= 0.9 * made and hits >= 0.8 * there


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sweep", type=Path)
    parser.add_argument("--name", required=True)
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args()
    machine, states, found = measured(chosen.sweep, chosen.name)
    text, holds = report(machine, list(zip(states, found, strict=True)), chosen.name)
    print(text)
    if chosen.write:
        head = f"# Recommendations on the sweep of {chosen.name}\n\nMade by `benchmarks/recommendations_of_sweep.py`."
        page = f"{head}\n\n{text}\n"
        (RESULTS / f"recommendations-of-sweep-{chosen.name}.md").write_text(page, encoding="utf-8")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
