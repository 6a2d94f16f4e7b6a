"""How far off the models of running times are, on configurations that they were not fitted to.

    python benchmarks/model_error.py benchmarks/results/sweep-h200.json --name h200 --write
    python benchmarks/model_error.py benchmarks/results/sweep-aarch64.json --name cpu-aarch64 --write

Reads what `specialization_sweep.py` measured. Problems, a kernel with its sizes, are left out eight at a time or so: a
model is fitted to the others, predicts them, and says between which times they are, by its errors on problems that it
had not seen either. `--write` puts the table into the results and the model, fitted to all, into the package.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from specialization_sweep import State

import tessera as ts
from tessera.metatracing.models.kernel_times import KernelTimes, Measured
from tessera.metatracing.models.situation import Situation
from tessera.metatracing.models.work_features import H200, Machine

ROOT = Path(__file__).parents[1]
FITTED = ROOT / "src" / "tessera" / "metatracing" / "models" / "calibrated"
RESULTS = ROOT / "benchmarks" / "results"
FOLDS, MEDIAN, COVERED = 8, 0.15, 0.90


def state_of(row: dict[str, Any]) -> State:
    block = None if row["block"] is None else tuple(row["block"])
    kept = (row["causal"], row["dtype"], row["layout"])
    return State(row["kernel"], tuple(row["sizes"]), *kept, block, row["warps"], row["assumed"])


def situation_of(state: State, machine: Machine, make: Any = None) -> Situation:
    """A state as models see it; arrays without numbers unless others are given."""
    args, static = state.arguments(make or ts.empty)
    return Situation(state.form(), args, static, machine, state.assumed)


def measured(path: Path, name: str) -> tuple[Machine, list[State], list[Measured], list[list[float]]]:
    """The machine of a sweep, its states, what was measured of them, and their trials."""
    said = json.loads(path.read_text(encoding="utf-8"))
    machine = H200 if said["device"] == "cuda" else Machine("cpu", said["threads"], name)
    rows = [row for row in said["rows"] if row["seconds"]]
    states, seconds = [state_of(row) for row in rows], [row["seconds"] for row in rows]
    found = [
        Measured(situation_of(state, machine).program(), took, state.problem)
        for state, took in zip(states, seconds, strict=True)
    ]
    return machine, states, found, [row.get("trial", []) for row in rows]


def held_out(machine: Machine, rows: list[Measured]) -> list[tuple[str, str, float, bool]]:
    """Of every row its kernel, its family, the relative error, and whether it was inside of the interval."""
    groups = list(dict.fromkeys(row.group for row in rows))
    kernels: dict[Any, str] = {group: group[0] for group in groups}  # pyright: ignore
    np.random.default_rng(1).shuffle(groups)  # pyright: ignore[reportArgumentType]
    found: list[tuple[str, str, float, bool]] = []
    for fold in range(FOLDS):
        out = set(groups[fold::FOLDS])
        times = KernelTimes.calibrated(machine, [row for row in rows if row.group not in out])
        for row in rows:
            if row.group in out and times.knows(row.program):
                said = times.predict(row.program)
                inside = said.low <= row.seconds <= said.high
                error = abs(said.seconds / row.seconds - 1)
                found.append((kernels[row.group], said.family, error, inside))
    return found


def table(found: list[tuple[str, str, float, bool]]) -> tuple[str, bool]:
    """The errors by family and kernel, and whether both bars hold over all."""
    groups: dict[str, list[tuple[float, bool]]] = defaultdict(list)
    for kernel, family, error, inside in found:
        for name in ("all", family, f"{family}: {kernel}"):
            groups[name].append((error, inside))
    lines = [
        "| programs | rows | median error | 90 % are below | inside the 95 % interval |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, rows in sorted(groups.items(), key=lambda one: (one[0] != "all", one[0])):
        errors, inside = [one for one, _ in rows], [one for _, one in rows]
        figures = f"{np.median(errors):.1%} | {np.quantile(errors, 0.9):.1%} | {np.mean(inside):.1%}"
        lines.append(f"| {name} | {len(rows)} | {figures} |")
    errors, inside = [one for one, _ in groups["all"]], [one for _, one in groups["all"]]
    return "\n".join(lines), bool(np.median(errors) <= MEDIAN and np.mean(inside) >= COVERED)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sweep", type=Path)
    parser.add_argument("--name", required=True)
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args()
    machine, _, rows, _ = measured(chosen.sweep, chosen.name)
    text, holds = table(held_out(machine, rows))
    bars = f"median error at most {MEDIAN:.0%}, and at least {COVERED:.0%} of the times inside of their intervals"
    words = f"{text}\n\nThe bars, {bars}, {'hold' if holds else 'do not hold'} over all rows."
    print(words)
    if chosen.write:
        head = f"# How far off the model of {chosen.name} is\n\nMade by `benchmarks/model_error.py` of"
        page = f"{head} [what was measured]({chosen.sweep.name}).\n\n{words}\n"
        (RESULTS / f"model-error-{chosen.name}.md").write_text(page, encoding="utf-8")
        FITTED.mkdir(exist_ok=True)
        (FITTED / f"{chosen.name}.json").write_text(KernelTimes.calibrated(machine, rows).written(), encoding="utf-8")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
