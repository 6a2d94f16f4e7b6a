"""How good the ranking of blocks on CPUs is for problems that its constants were not fitted to.

    python benchmarks/kernel_blocks.py --write

Reads the sweeps of blocks in `results/cpu-blocks.txt`. Problems, rows with a width and an element type, are left out
one after the other, on both processors; constants are fitted to the other sweeps, from a start that is the same for
all of a kind, and the block that is ranked first then is compared with the best that was measured.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from pathlib import Path

from tessera import bf16, f32
from tessera.metatracing.models import kernel_blocks
from tessera.metatracing.models.kernel_blocks import Processor, Work, clocks

RESULTS = Path(__file__).parent / "results"
PROCESSORS = {
    "Intel Xeon": Processor("amx", 48 << 10, 2 << 20, 2),
    "Neoverse N1": Processor("neon", 64 << 10, 1 << 20, 1),
}
START: dict[str, float] = {
    **dict.fromkeys(("ELEMENT", "ROW", "SUMS"), 10.0),
    **dict.fromkeys(("GROUP", "PROGRAM", "MATRIX"), 100.0),
    **dict.fromkeys(("STRIP", "AWAY"), 1.0),
    "MASKED": 0.1,
    **dict.fromkeys(("NEAR", "FAR"), 16.0),
}
"""Of each constant about its size: clocks of a vector, clocks of a part of a program instance, bytes in a clock."""
STEPS = (4.0, 2.0, 1.4, 1.2, 1.1, 1.05)


@dataclass(frozen=True)
class Sweep:
    """Milliseconds of a problem on a processor, by blocks."""

    processor: str
    name: str
    work: Work
    times: dict[tuple[int, int], float]

    @property
    def problem(self) -> tuple[int, int, str]:
        return self.work.rows, self.work.width, str(self.work.dtype)

    def speed(self, first: int = 1) -> float:
        """Of the best among the `first` blocks of the ranking, over that of the best of all."""
        ranked = sorted(self.times, key=lambda block: clocks(self.work, block, PROCESSORS[self.processor]))
        return min(self.times.values()) / min(self.times[block] for block in ranked[:first])

    def error(self) -> float:
        """Mean squares of how far off the ratios of times between blocks are, as logarithms."""
        here = PROCESSORS[self.processor]
        apart = [log(clocks(self.work, block, here) / took) for block, took in self.times.items()]
        middle = sum(apart) / len(apart)
        return sum((one - middle) ** 2 for one in apart) / len(apart)


def sweeps() -> list[Sweep]:
    found: list[Sweep] = []
    processor = ""
    for line in (RESULTS / "cpu-blocks.txt").read_text(encoding="utf-8").splitlines():
        processor = next((name for name in PROCESSORS if line.startswith(name)), processor)
        if (head := re.match(r"  1x(\d+)x(\d+)x(\d+) (f32|bf16)( causal)?", line)) is not None:
            heads, rows, width = (int(head[index]) for index in (1, 2, 3))
            pairs = re.findall(r"\((\d+),(\d+)\) ([\d.]+)", line)
            times = {(int(a), int(b)): float(took) for a, b, took in pairs}
            work = Work(rows, rows, width, heads, f32 if head[4] == "f32" else bf16)
            found.append(Sweep(processor, head[0].strip(), work, times))
    return found


def use(constants: dict[str, float]) -> None:
    for name, value in constants.items():
        setattr(kernel_blocks, name, value)


def fitted(several: Sequence[Sweep]) -> dict[str, float]:
    """Constants with the least errors: one after the other is made larger and smaller as long as that helps."""
    found: dict[str, float] = dict(START)

    def error(constants: dict[str, float]) -> float:
        use(constants)
        return sum(one.error() for one in several)

    least = error(found)
    for step in STEPS:
        better = True
        while better:
            better = False
            for name in START:
                for factor in (step, 1 / step):
                    tried: dict[str, float] = {**found, name: found[name] * factor}
                    if (now := error(tried)) < 0.9999 * least:
                        found, least, better = tried, now, True
    return found


def mean(values: Sequence[float]) -> float:
    return exp(sum(map(log, values)) / len(values))


def report() -> str:
    everything = sweeps()
    shipped = {name: float(getattr(kernel_blocks, name)) for name in START}
    rows: list[tuple[Sweep, float, float, float]] = []
    for problem in dict.fromkeys(one.problem for one in everything):
        use(fitted([one for one in everything if one.problem != problem]))
        judged = [(one, one.speed(), one.speed(3)) for one in everything if one.problem == problem]
        use(shipped)
        rows += [(one, first, best, one.speed()) for one, first, best in judged]
    lines = [
        "Speed of the block that is ranked first, over that of the best that was measured. Held out: constants were",
        "fitted to the sweeps of other problems alone. Shipped: by the constants in the package, which all sweeps have",
        "part in.",
        "",
        "| processor | sweeps | held out: mean | worst | best of the first three | shipped: mean | worst |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for processor in PROCESSORS:
        mine = [row[1:] for row in rows if row[0].processor == processor]
        first, three, own = ([row[index] for row in mine] for index in range(3))
        figures = [mean(first), min(first), mean(three), mean(own), min(own)]
        lines.append(f"| {processor} | {len(mine)} | {' | '.join(f'{one:.3f}' for one in figures)} |")
    lines += ["", "| problem | processor | held out | best of the first three | shipped |", "|---|---|---:|---:|---:|"]
    lines += [
        f"| {one.name} | {one.processor} | {first:.3f} | {three:.3f} | {own:.3f} |" for one, first, three, own in rows
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args()
    text = report()
    print(text)
    if chosen.write:
        head = "# Blocks of kernels on CPUs\n\nMade by `benchmarks/kernel_blocks.py` of [sweeps](cpu-blocks.txt).\n\n"
        (RESULTS / "cpu-blocks-held-out.md").write_text(f"{head}{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
