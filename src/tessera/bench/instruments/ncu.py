"""Metrics of a kernel from Nsight Compute: the four profiler metrics, registers, shared memory, occupancy.

ncu starts the process that it looks at. `profile` runs a command under it, and what that command does within `region`
is profiled and found again under the region's label. Clocks are left alone. A figure that ncu does not give is None,
with the reason: nothing is estimated instead.
"""

from __future__ import annotations

import csv
import math
import re
import subprocess
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tessera.bench.instruments.libraries import library
from tessera.targets.cuda.ptx.tools import find_tool

LANES = 32
_TIME = "gpu__time_duration.sum"
_SECONDS = {
    "s": 1.0,
    "second": 1.0,
    "ms": 1e-3,
    "msecond": 1e-3,
    "us": 1e-6,
    "usecond": 1e-6,
    "ns": 1e-9,
    "nsecond": 1e-9,
}
_BYTES = {"byte": 1, "Kbyte": 1e3, "Mbyte": 1e6, "byte/block": 1, "Kbyte/block": 1e3, "Mbyte/block": 1e6}
_RANGE = "Push/Pop_Range"
_LABEL = "tessera-bench"
_ERROR = re.compile(r"==ERROR== (.*)")
_SECONDS_LIMIT = 600.0


def _bytes(value: float, unit: str) -> float:
    return value * _BYTES.get(unit, 1)


@dataclass(frozen=True)
class Metric:
    """A counter of Nsight Compute, for compute capability 9.0, and what makes our figure of it."""

    counter: str
    convert: Callable[[float, str], float] = lambda value, _: value
    """From the value and ncu's unit for it."""


METRICS: Mapping[str, Metric] = {
    # The share of the kernel's time that a multiprocessor has at least one warp, over all of them.
    "sm_efficiency": Metric("sm__cycles_active.avg.pct_of_peak_sustained_elapsed"),
    # Warps in flight, of those that a multiprocessor can hold, while it has any.
    "achieved_occupancy": Metric("sm__warps_active.avg.pct_of_peak_sustained_active"),
    # Cycles in which the tensor cores work: all of mma.sync and wgmma, whatever the type.
    "tensor_active": Metric("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"),
    # Threads that take part in an instruction, of the 32 of a warp.
    "warp_execution_efficiency": Metric(
        "smsp__thread_inst_executed_per_inst_executed.ratio", lambda value, _: 100 * value / LANES
    ),
    "theoretical_occupancy": Metric("sm__maximum_warps_per_active_cycle_pct"),
    "registers_per_thread": Metric("launch__registers_per_thread"),
    "shared_memory_per_block": Metric("launch__shared_mem_per_block", _bytes),
}
PROFILER_METRICS = ("sm_efficiency", "achieved_occupancy", "tensor_active", "warp_execution_efficiency")
"""The specification's four, in percent."""
_LARGEST = ("registers_per_thread", "shared_memory_per_block")
"""Of several kernels the largest counts; of everything else the mean over their time."""


@dataclass(frozen=True)
class Profile:
    """The figures of one region, by the names of `METRICS`; and why others are missing."""

    kernels: tuple[str, ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict[str, float])
    unavailable: Mapping[str, str] = field(default_factory=dict[str, str])

    def all(self) -> dict[str, Any]:
        missing: dict[str, Any] = dict.fromkeys(METRICS)
        return {**missing, **self.figures, "kernels": list(self.kernels), "unavailable": dict(self.unavailable)}


def missing() -> str | None:
    """Why there are no profiles here, or None."""
    return None if find_tool("ncu") else "there is no ncu on the path or in CUDA_HOME: Nsight Compute is not installed"


@contextmanager
def region(label: str) -> Generator[None]:
    """Marks what is profiled, in a process that ncu started; `label` is letters, digits and dots."""
    from tessera.runtime.cuda import driver
    from tessera.runtime.cuda.context import Context

    context, cu = Context.of(0), driver.bindings()
    context.synchronize()
    with context:
        driver.check(cu.cuProfilerStart(), "starting the profiler")
    try:
        with _range(f"{_LABEL} {label}"):
            yield
            context.synchronize()
    finally:
        with context:
            driver.check(cu.cuProfilerStop(), "stopping the profiler")


def _range(name: str) -> AbstractContextManager[Any]:
    """By the package nvtx, or by torch, which brings its own."""
    if find_spec("nvtx") is None and find_spec("torch") is not None:
        return library("torch").cuda.nvtx.range(name)
    from tessera.runtime.cuda.ranges import named_range

    return named_range(name)


def profile(
    command: Sequence[str],
    labels: Sequence[str],
    environment: Mapping[str, str] | None = None,
    keep: Path | None = None,
) -> dict[str, Profile]:
    """Runs a command under ncu, once; the profiles of its regions. Every label has one, if only with reasons.

    `keep` is a file for what ncu and the command wrote.
    """
    if (why := missing()) is not None:
        return {label: _without(why) for label in labels}
    counters = [_TIME, *(metric.counter for metric in METRICS.values())]
    dropped: dict[str, str] = {}
    while True:
        asked = [
            str(find_tool("ncu")),
            "--csv",
            "--page",
            "raw",
            "--nvtx",
            "--clock-control",
            "none",
            "--profile-from-start",
            "off",
        ]
        asked += ["--target-processes", "all", "--metrics", ",".join(counters)]
        try:
            done = subprocess.run(
                [*asked, *command],
                capture_output=True,
                text=True,
                errors="replace",
                env=None if environment is None else dict(environment),
                timeout=_SECONDS_LIMIT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return {label: _without(f"ncu gave no answer in {_SECONDS_LIMIT:.0f} s") for label in labels}
        said = f"{done.stdout}\n{done.stderr}"
        # A counter that this ncu or this GPU does not know is left out, and the others are asked for again.
        unknown = [each for each in counters if any(each in error for error in _ERROR.findall(said))]
        if not unknown:
            break
        dropped.update(dict.fromkeys(unknown, "ncu does not know it"))
        counters = [each for each in counters if each not in unknown]
    if keep is not None:
        keep.write_text(said, encoding="utf-8")
    found = parse(said, dropped)
    errors = _ERROR.findall(said)
    reason = f"ncu says: {errors[0]}" if errors else f"ncu saw no kernel in it (ended with {done.returncode})"
    return {label: found.get(label) or _without(reason) for label in labels}


def _without(why: str) -> Profile:
    return Profile(unavailable=dict.fromkeys(METRICS, why))


def parse(text: str, dropped: Mapping[str, str] | None = None) -> dict[str, Profile]:
    """Profiles by label, from what ncu and the command wrote: a table with a line of units, and one for each kernel."""
    lines = text.splitlines()
    header = next((index for index, line in enumerate(lines) if line.startswith('"ID",')), None)
    if header is None:
        return {}
    table = [line for line in lines[header:] if line.startswith('"')]
    units, *kernels = csv.DictReader(table)
    regions: dict[str, list[Mapping[str, str]]] = {}
    for kernel in kernels:
        for label in _labels(kernel):
            regions.setdefault(label, []).append(kernel)
    return {label: _profile(inside, units, dropped or {}) for label, inside in regions.items()}


def _labels(kernel: Mapping[str, str]) -> list[str]:
    """A cell of ranges reads `1  "<default domain>:NAME:none:…"  "…" `, the outermost first."""
    cell = next((value for name, value in kernel.items() if name and _RANGE in name), "") or ""
    return re.findall(rf":{_LABEL} ([\w.]+):", cell)


def _profile(kernels: Sequence[Mapping[str, str]], units: Mapping[str, str], dropped: Mapping[str, str]) -> Profile:
    seconds = [_number(kernel.get(_TIME)) for kernel in kernels]
    weights = [1.0 if each is None else each * _SECONDS.get(units.get(_TIME, ""), 1.0) for each in seconds]
    figures: dict[str, float] = {}
    unavailable: dict[str, str] = {}
    for name, metric in METRICS.items():
        values = [_number(kernel.get(metric.counter)) for kernel in kernels]
        known = [value for value in values if value is not None]
        if len(known) < len(values) or not known:
            given = next((kernel.get(metric.counter) for kernel in kernels), None)
            reason = dropped.get(metric.counter) or f"ncu gave {given!r}"
            unavailable[name] = f"{metric.counter}: {reason}"
            continue
        converted = [metric.convert(value, units.get(metric.counter, "")) for value in known]
        if name in _LARGEST:
            figures[name] = max(converted)
        else:
            figures[name] = sum(map(math.prod, zip(converted, weights, strict=True))) / (sum(weights) or 1.0)
    return Profile(tuple(kernel.get("Kernel Name") or "" for kernel in kernels), figures, unavailable)


def _number(cell: str | None) -> float | None:
    """ncu writes thousands with commas, and words where it has no figure."""
    try:
        return float((cell or "").replace(",", ""))
    except ValueError:
        return None
