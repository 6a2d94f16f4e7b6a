"""Events of kernels beside the counters of a GPU: what a walk through the code says, and what ncu counted.

    python benchmarks/event_counters.py                     on a machine with a GPU and ncu; prints a table
    python benchmarks/event_counters.py --out benchmarks/results/h200-event-counters.md
    python benchmarks/event_counters.py --again benchmarks/results/h200-event-counters.md       without a GPU

Each kernel is launched once under ncu, and its own code, with the same arguments, is walked through on the host. With
`--again` events are compared with counters of an earlier table: events need no GPU. Conflicts of banks of kernels that
have some by their addresses are compared as they are; of kernels that have none, the counter's are compared as parts of
the wavefronts: it also has those of requests that met others.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import tessera as ts
from tessera import Schedule, kernel, tile
from tessera.metatracing import ComputeType, GPUComputePatternTracer, GPUMemoryPatternTracer, KernelExecution
from tessera.stdlib import flash_attention, gemm, layernorm, softmax
from tessera.targets.cuda.ptx.tools import find_tool

WITHIN = 0.10
L1 = "l1tex__t_{what}_pipe_lsu_mem_global_op_{op}.sum"
COUNTERS: Mapping[str, tuple[str, ...]] = {
    "sectors loaded": (L1.format(what="sectors", op="ld"), L1.format(what="sectors", op="ldgsts")),
    "sectors stored": (L1.format(what="sectors", op="st"),),
    "load requests": (L1.format(what="requests", op="ld"), L1.format(what="requests", op="ldgsts")),
    "store requests": (L1.format(what="requests", op="st"),),
    "shared load turns": ("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",),
    "shared store turns": ("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",),
    "bank conflicts": (
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    ),
    "products of warps": ("sm__inst_executed_pipe_tensor_op_hmma.sum",),
    "products of warpgroups": ("sm__inst_executed_pipe_tensor_op_gmma.sum",),
    "special functions": ("sm__inst_executed_pipe_xu.sum",),
    "instructions": ("smsp__inst_executed.sum",),
}
COMPARED = ("sectors loaded", "sectors stored", "load requests", "store requests", "bank conflicts")
"""What has to agree; the rest is shown: the assembler joins loads of neighbouring words, and adds functions."""
FEW = 64
"""Counts so small are equal: a barrier's word, a program instance's number."""


class Case(NamedTuple):
    """A kernel, and what it is called with."""

    name: str
    kernel: Any
    args: tuple[Any, ...]
    static: Mapping[str, Any]


CONFLICTING = (
    (ts.f32, (64, 64), (1024, 768)),
    (ts.f32, (48, 40), (960, 800)),
    (ts.f32, (72, 72), (1152, 720)),
    (ts.f32, (64, 48), (1024, 768)),
    (ts.f16, (48, 40), (960, 800)),
)
"""Blocks whose rows meet in banks when they are transposed: no swizzle of so many threads keeps them apart."""


@kernel.schedule(Schedule(block=(32, 32)))
def transpose(x: Any, y: Any):
    here = tile.context()
    row, col = tile.program_id(0) * here.m, tile.program_id(1) * here.n
    block = tile.load(x, at=(row, col), shape=(here.m, here.n))
    tile.store(y, tile.transpose(block), at=(col, row))


@kernel.schedule(Schedule(block=(32, 32)))
def copy(x: Any, y: Any):
    here = tile.context()
    row, col = tile.program_id(0) * here.m, tile.program_id(1) * here.n
    tile.store(y, tile.load(x, at=(row, col), shape=(here.m, here.n)), at=(row, col))


def cases(put: Callable[[Any], Any]) -> Iterator[Case]:
    """All kernels; `put` moves an array to the device that they run on."""

    def some(*shape: int, dtype: Any = ts.f32, seed: int = 0) -> Any:
        return put(ts.randn(shape, seed=seed).to(dtype))

    bf16 = ts.bf16
    yield Case("transpose", transpose[32, 24], (some(1024, 768), some(768, 1024)), {})
    yield Case("softmax", softmax, (some(2048, 1000),), {})
    yield Case("layernorm", layernorm, (some(2048, 1024), some(1024), some(1024)), {})
    portable = gemm.with_schedule(Schedule(block=(64, 64, 32), warps=2))[16, 12]
    operands = some(1024, 512, dtype=bf16), some(512, 768, dtype=bf16), some(1024, 768, dtype=bf16)
    yield Case("portable gemm", portable, operands, {})
    heads = [some(2, 4, 512, 64, dtype=bf16, seed=seed) for seed in range(4)]
    yield Case("attention", flash_attention.with_schedule(Schedule(block=(64, 64), warps=8)), (*heads, 0.125), {})
    yield Case("causal attention by agents", flash_attention, (*heads, 0.125), {"causal": True})
    yield Case("copy of columns", copy[24, 32], (some(1024, 768).T, some(768, 1024)), {})
    transposed_operands = operands[0], some(768, 512, dtype=bf16).T, operands[2]
    yield Case("portable gemm, columns", portable, transposed_operands, {})
    for dtype, block, (rows, columns) in CONFLICTING:
        form = transpose.with_schedule(Schedule(block=block, warps=4))[rows // block[0], columns // block[1]]
        arrays = some(rows, columns, dtype=dtype), some(columns, rows, dtype=dtype)
        yield Case(f"transpose of {block[0]}x{block[1]} {dtype}", form, arrays, {})


def walked(execution: KernelExecution) -> dict[str, int]:
    """What events say, by the names of the counters."""
    memory = GPUMemoryPatternTracer().trace_memory_patterns(execution)
    compute = GPUComputePatternTracer().trace_compute_patterns(execution)
    lanes = [one for one in memory.global_accesses if "bulk" not in one.instruction]
    loads = [one for one in lanes if one.access_type.name == "GLOBAL_LOAD"]
    stores = [one for one in lanes if one.access_type.name == "GLOBAL_STORE" and one.instruction.startswith("st")]
    shared = defaultdict[str, int](int)
    for one in memory.shared_accesses:
        if not one.instruction.startswith("cp"):  # copies that run beside the threads have a counter of their own
            shared[one.access_type.name] += one.wavefronts
    return {
        "sectors loaded": sum(one.sectors or 0 for one in loads),
        "sectors stored": sum(one.sectors or 0 for one in stores),
        "load requests": sum(one.requests for one in loads),
        "store requests": sum(one.requests for one in stores),
        "shared load turns": shared["SHARED_LOAD"],
        "shared store turns": shared["SHARED_STORE"],
        "bank conflicts": sum(one.bank_conflicts for one in memory.shared_accesses),
        "products of warps": compute.count(ComputeType.TENSOR_CORE_WMMA),
        "products of warpgroups": compute.count(ComputeType.TENSOR_CORE_WGMMA),
        "special functions": compute.count(ComputeType.SPECIAL_FUNCTION),
        "instructions": execution.total(sum(execution.walked.executed.values())),
    }


def inside(path: Path) -> None:
    """In the process that ncu looks at: every kernel once, between marks, and its events to a file."""
    from tessera.bench.instruments.ncu import region
    from tessera.runtime.cuda import synchronize
    from tessera.tile.calls.settings import settings, settings_on

    found: dict[str, dict[str, int]] = {}
    for index, case in enumerate(cases(lambda one: one.cuda())):
        chosen = settings()
        assert chosen is not None
        here = settings_on(case.args[0].device, chosen)
        program, values = case.kernel.program_for(case.args, case.static, here)
        synchronize()
        with region(f"case{index}"):
            case.kernel(*case.args, **case.static)
            synchronize()
        found[case.name] = walked(KernelExecution.launched(program.executable, values))
    path.write_text(json.dumps(found))


def known_counters() -> set[str]:
    """The counters that this ncu has for the GPU."""
    done = subprocess.run([str(find_tool("ncu")), "--query-metrics"], capture_output=True, text=True, check=False)
    return {line.split()[0] for line in done.stdout.splitlines() if line.strip()}


def counted(names: list[str], folder: Path) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, int]]]:
    """The counters of each case, and its events."""
    known = known_counters()
    wanted = sorted({one for several in COUNTERS.values() for one in several if one.rpartition(".")[0] in known})
    for one in sorted({one for several in COUNTERS.values() for one in several} - set(wanted)):
        print(f"ncu has no {one}")
    events = folder / "events.json"
    command = [str(find_tool("ncu")), "--csv", "--page", "raw", "--nvtx", "--profile-from-start", "off"]
    command += ["--target-processes", "all", "--metrics", ",".join(wanted)]
    command += [sys.executable, str(Path(__file__).absolute()), "--inside", str(events)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=110)
    lines = [line for line in done.stdout.splitlines() if line.startswith('"')]
    if len(lines) < 3:
        raise SystemExit(f"ncu gave no table:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    _, *rows = csv.DictReader(lines)
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        label = next((cell for cell in row.values() if cell and "case" in cell and "tessera" in cell.lower()), "")
        marked = re.search(r"case(\d+)", label)
        if marked is not None:
            mine = found.setdefault(names[int(marked[1])], defaultdict(float))
            for counter in wanted:
                mine[counter] += float((row.get(counter) or "0").replace(",", ""))
    return found, json.loads(events.read_text())


def _here(one: Any) -> Any:
    return one


def read_counters(path: Path) -> dict[str, dict[str, float]]:
    """The counters of a table that was written before."""
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for line in path.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 5 and cells[1] in COUNTERS:
            found[cells[0]][cells[1]] = float(cells[3].replace(",", ""))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inside", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--again", type=Path)
    chosen = parser.parse_args()
    if chosen.inside is not None:
        inside(chosen.inside)
        return 0
    names = [case.name for case in cases(lambda one: one)]
    if chosen.again is not None:
        sums = read_counters(chosen.again)
        events = {
            case.name: walked(KernelExecution.of(case.kernel, *case.args, **case.static)) for case in cases(_here)
        }
    else:
        with tempfile.TemporaryDirectory() as folder:
            counters, events = counted(names, Path(folder))
        sums = {
            name: {what: sum(found.get(one, 0.0) for one in several) for what, several in COUNTERS.items()}
            for name, found in counters.items()
        }
    lines = ["| kernel | what | events | counters | ratio |", "|---|---|---:|---:|---:|"]
    wrong = 0
    for name in names:
        for what in COUNTERS:
            mine, theirs = events[name][what], sums[name].get(what, 0.0)
            if not mine and not theirs:
                continue
            wavefronts = sum(sums[name].get(one, 0.0) for one in ("shared load turns", "shared store turns"))
            stray = what == "bank conflicts" and not mine
            agrees = abs(mine - theirs) <= max(FEW, WITHIN * (wavefronts if stray else theirs))
            wrong += what in COMPARED and not agrees
            ratio = f"{mine / theirs:.3f}" if theirs else "-"
            mark = "" if agrees else " (off)" if what in COMPARED else " (shown only)"
            lines.append(f"| {name} | {what} | {mine:,} | {theirs:,.0f} | {ratio}{mark} |")
    text = "\n".join(lines)
    print(text)
    print(f"{wrong} of the compared counts are more than {WITHIN:.0%} off")
    if (path := chosen.out or chosen.again) is not None:
        path.write_text(f"# Events beside counters\n\n{text}\n", encoding="utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
