"""What tiers cost and how they behave over time: calls, climbing, the next process, a changing workload, an edit.

Every part that needs caches without anything in them, or a process of its own, is a child of this file:
`python benchmarks/tier_life.py PART DEVICE` prints one line of JSON. `workload DEVICE --slow` also prints what its
slowest calls did (`slow_calls.py`); wrapping all that costs calls a little.
"""

from __future__ import annotations

import compileall
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import llvmlite
import ml_dtypes
import numpy as np
import xdsl

import tessera as ts
from tessera.metatracing import AttentionParams, MetaTracingRuntime, RuntimeConfig
from tessera.metatracing.attention import BASELINE
from tessera.stdlib import flash_attention

Bars = dict[str, dict[str, Any]]
CAUSAL = AttentionParams(is_causal=True)
SHAPES = {
    "cpu": [(1, 8, 256, 64), (1, 8, 320, 64), (1, 8, 448, 64), (1, 8, 512, 64)],
    "cuda": [(4, 16, 2048, 64), (2, 16, 4096, 64), (8, 16, 1024, 64), (4, 16, 1536, 64)],
}
CALLS = 5000
PAUSE = 0.002
PHASE = 625
"""Calls until another shape becomes the usual one."""
RUNS = 5
"""Of the changing workload, each in a process of its own with a cold cache; the median counts, and all are told."""
CALM = 150
"""The same, when nothing changes any more."""
EDITED = """
from tessera import Out, kernel, tile


@kernel
def edited(q, k, v, o: Out, scale: float):
    here = tile.context()
    queries = tile.load(q)
    acc, top, total = tile.zeros((here.m, here.d)), tile.full((here.m,), -tile.INF), tile.zeros((here.m,))
    for block in tile.range_n(k.shape, here.n):
        scores = tile.dot(queries, tile.load(k, block).T) * scale
        scores = NUMBER * tile.tanh(scores)
        weights, block_top, block_total = tile.softmax_online(scores)
        acc, top, total = tile.softmax_accumulate(acc, top, total, weights, tile.load(v, block), block_top, block_total)
    tile.store(o, tile.cast(acc / total[:, None], o.dtype))
"""


def synchronize(device: str) -> None:
    if device != "cpu":
        from tessera.runtime.cuda.streams import synchronize as wait

        wait()


def arrays(shape: tuple[int, ...], device: str) -> tuple[Any, Any, Any, Any]:
    dtype = ts.f32 if device == "cpu" else ts.f16
    drawn = (ts.randn(shape, dtype, seed=seed).to(device) for seed in range(3))
    return (*drawn, ts.empty(shape, dtype, device=device))  # pyright: ignore[reportReturnType]


def shapes_for(device: str) -> list[tuple[int, int, int, int]]:
    return SHAPES["cpu" if device == "cpu" else "cuda"]


def median_ns(call: Callable[[], Any], count: int, repeats: int, device: str) -> float:
    """Of a call, started and not waited for."""
    found: list[float] = []
    for _ in range(repeats):
        synchronize(device)
        began = time.perf_counter_ns()
        for _ in range(count):
            call()
        found.append((time.perf_counter_ns() - began) / count)
    synchronize(device)
    return float(np.median(found))


# Costs of a call


def costs(device: str) -> dict[str, float]:
    """Orchestration: a call through the runtime against the program that it finds. Tracing: with and without."""
    tiny = arrays((1, 1, 64, 64), device)
    q, k, v, o = tiny
    scale = 0.125
    soon: dict[str, Any] = {"background_compilation": False, "persist": False}
    soon |= {"tier2_compilation_threshold_ms": 0.0, "tier3_specialization_threshold_ms": 0.0}
    runtime = MetaTracingRuntime(RuntimeConfig(**soon))
    tiered = runtime.tiered(flash_attention)
    for _ in range(100):
        tiered(q, k, v, o, scale, causal=True)
        synchronize(device)
    (entry,) = tiered.entries.values()
    bound, flat = entry.run, [one.geometry for one in tiny]
    found: dict[str, list[float]] = {"bound": [], "tiered": [], "executed": []}
    calls: dict[str, Callable[[], Any]] = {
        "bound": lambda: bound(*flat, scale),
        "tiered": lambda: tiered(q, k, v, o, scale, causal=True),
        "executed": lambda: runtime.execute_flash_attention(q, k, v, o, CAUSAL),
    }
    for _ in range(15):
        for name, call in calls.items():
            found[name].append(median_ns(call, 200, 1, device))
    typical = {name: float(np.median(one)) for name, one in found.items()}
    usual = arrays(shapes_for(device)[0], device)
    traced = MetaTracingRuntime(RuntimeConfig(**soon))
    plain = MetaTracingRuntime(RuntimeConfig(**soon, enable_tracing=False, sample_period=1 << 30))
    both: dict[str, list[float]] = {"traced": [], "plain": []}
    runtimes = {"traced": traced, "plain": plain}
    for runtime in runtimes.values():
        for _ in range(80):
            runtime.execute_flash_attention(*usual, CAUSAL)
            synchronize(device)
        runtime.tiered(flash_attention)
    # The same program in both: what differs is what is recorded.
    (site,), (other,) = traced.sites(), plain.sites()
    other.programs[:] = site.programs
    other.forget()
    for number in range(24):
        for name, runtime in sorted(runtimes.items(), reverse=bool(number % 2)):
            synchronize(device)
            began = time.perf_counter_ns()
            for _ in range(32):
                runtime.execute_flash_attention(*usual, CAUSAL)
            synchronize(device)
            both[name].append((time.perf_counter_ns() - began) / 32)
    pairs = np.asarray(both["traced"]) / np.asarray(both["plain"])
    return {
        "bound_us": typical["bound"] / 1e3,
        "orchestration_us": (typical["tiered"] - typical["bound"]) / 1e3,
        "execute_flash_attention_us": (typical["executed"] - typical["bound"]) / 1e3,
        "tracing_percent": 100 * (float(np.median(pairs)) - 1),
        "call_us": float(np.median(both["plain"])) / 1e3,
    }


# Climbing


def climbing(device: str, ahead: float = 5.0) -> dict[str, float]:
    """Seconds from the first call to the first results of each tier; caches are cold, compiling is in the background.

    The runtime is there so long before its first call that a process of its own has loaded the compiler, as in
    processes that read weights first: in `at_once` it is made by the first call.
    """
    found: dict[str, float] = {}
    given = arrays(shapes_for(device)[0], device)
    synchronize(device)
    with MetaTracingRuntime() as runtime:
        until = time.perf_counter() + ahead
        while time.perf_counter() < until and not runtime.compiling.is_ready:
            time.sleep(0.01)
        began = time.perf_counter()
        while time.perf_counter() - began < 40:
            tier = int(runtime.execute_flash_attention(*given, CAUSAL).tier_used)
            synchronize(device)
            found.setdefault(f"tier{tier}", time.perf_counter() - began)
            busy = any(one.is_working or one.recording.pending for one in runtime.sites())
            # What was taken in the end is on the disk by then; the next process begins with that.
            if not busy and runtime.get_runtime_stats().total_specialization_time_ms:
                break
        found["contests"] = runtime.counts["contests"]
        found["taken"] = max(int(one.tier) for site in runtime.sites() for one in site.programs)
    return found


def at_once(device: str) -> dict[str, float]:
    return climbing(device, 0.0)


def second(device: str) -> dict[str, float]:
    """Milliseconds to the first result in a process that finds what another has left."""
    given = arrays(shapes_for(device)[0], device)
    synchronize(device)
    began = time.perf_counter()
    with MetaTracingRuntime() as runtime:
        tier = int(runtime.execute_flash_attention(*given, CAUSAL).tier_used)
        synchronize(device)
        return {"ms": 1e3 * (time.perf_counter() - began), "tier": tier}


# A changing workload


class Stopwatch:
    """How long a call takes its caller; and how fast it is, against the baseline's program a moment later.

    Clocks of processors and GPUs come and go with what there is to do: two programs are interleaved. What takes
    its time on a GPU is measured by the GPU's own clock, in two ways. An idle GPU waits for the host between the first
    event and the program: so the one is how fast a call is with its launch, cold after a pause. Behind other work,
    `busy`, all is queued before the GPU gets there: so the other is how fast the program is.
    """

    def __init__(self, device: str, busy: Callable[[], Any], watcher: Any = None) -> None:
        self.device, self.busy, self.watcher = device, busy, watcher
        self.events: tuple[Any, Any] | None = None
        if device != "cpu":
            from tessera.runtime.cuda.streams import Event

            self.events = Event(device, timing=True), Event(device, timing=True)

    def waited(self, run: Callable[[], Any], told: Callable[[], tuple[str, bool]] | None = None) -> tuple[Any, float]:
        """The result of a call, and the microseconds that its caller waits for it; `told` says what serves it."""
        if self.watcher is not None and told is not None:
            return self.watcher.waited(run, lambda: synchronize(self.device), told)
        began = time.perf_counter_ns()
        result = run()
        synchronize(self.device)
        return result, (time.perf_counter_ns() - began) / 1e3

    def compared(
        self, run: Callable[[], Any], baseline: Callable[[], Any], told: Callable[[], tuple[str, bool]] | None = None
    ) -> tuple[Any, float, float, float]:
        """The same; and how many times as fast as the baseline it was, with its launch and without."""
        result, waited, took = self._launched(run, told)
        _, _, other = self._launched(baseline)
        if self.events is None:
            return result, waited, other / took, other / took
        return result, waited, other / took, self._alone(baseline) / self._alone(run)

    def _launched(
        self, run: Callable[[], Any], told: Callable[[], tuple[str, bool]] | None = None
    ) -> tuple[Any, float, float]:
        events = self.events
        if events is None:
            result, waited = self.waited(run, told)
            return result, waited, waited
        began, ended = events

        def between() -> Any:
            began.record()
            result = run()
            ended.record()
            return result

        result, waited = self.waited(between, told)
        return result, waited, 1e3 * began.milliseconds_until(ended)

    def _alone(self, run: Callable[[], Any]) -> float:
        """Microseconds of the GPU's work alone; NaN where the host was too late, time after time."""
        assert self.events is not None
        began, ended = self.events
        for _ in range(4):
            self.busy()
            began.record()
            run()
            ended.record()
            is_behind = not began.is_done()
            synchronize(self.device)
            if is_behind:
                return 1e3 * began.milliseconds_until(ended)
        return float("nan")


def workload(device: str, watcher: Any = None) -> dict[str, Any]:
    """Calls whose usual shape changes now and then, and of which one in five has another.

    They are compared with calls of the same mix when nothing changes any more: what caches hold is the same then. What
    callers wait for is measured for all calls; how fast programs are, in the calls 150 to 200 behind each shift.
    `after_shifts` is of programs alone, and has the bar; `after_shifts_launched` is with what an idle GPU waits for.
    `p99` is of all calls; of those that are compared on a GPU the benchmark's own events are a part, so that
    `p99_without_compared` is without them. `p99_when_calm` is of calls when nothing changes any more: what the host
    does by itself. A watcher sees what calls do.
    """
    shapes, random = shapes_for(device), np.random.default_rng(0)
    given, others = ([arrays(shape, device) for shape in shapes] for _ in range(2))
    between = arrays(shapes[1], device)
    baseline = flash_attention.with_schedule(BASELINE)
    for one in others:
        baseline(*one, one[0].shape[-1] ** -0.5, causal=True)
    synchronize(device)

    def mixed(usual: Sequence[int]) -> list[int]:
        return [int(random.integers(len(shapes))) if random.random() < 0.2 else one for one in usual]

    usual = [(number // PHASE) % len(shapes) for number in range(CALLS)]
    plan = mixed(usual)
    took, tiers = np.zeros(CALLS), np.zeros(CALLS, int)
    behind: dict[int, list[tuple[float, float]]] = {shift: [] for shift in range(PHASE, CALLS, PHASE)}
    # Calls of a GPU are over before anything could be compiled: as in a process that does other work, too, they have
    # their time.
    pause = 0.0 if device == "cpu" else PAUSE
    watch = Stopwatch(device, lambda: baseline(*between, between[0].shape[-1] ** -0.5, causal=True), watcher)

    def called(which: int) -> Any:
        return runtime.execute_flash_attention(*given[which], CAUSAL)

    def compared(which: int, told: Callable[[], tuple[str, bool]] | None = None) -> tuple[Any, float, float, float]:
        time.sleep(pause)
        one = others[which]

        def plainly() -> Any:
            return baseline(*one, one[0].shape[-1] ** -0.5, causal=True)

        return watch.compared(lambda: called(which), plainly, told)

    def waited(which: int, told: Callable[[], tuple[str, bool]] | None = None) -> tuple[Any, float]:
        time.sleep(pause)
        return watch.waited(lambda: called(which), told)

    calm: list[list[float]] = [[] for _ in given]
    speeds: list[list[tuple[float, float]]] = [[] for _ in given]
    is_compared = [number >= PHASE and 150 <= number % PHASE < 200 for number in range(CALLS)]
    with MetaTracingRuntime() as runtime, watcher or nullcontext():
        tells = [None if watcher is None else partial(watcher.serving, runtime, shape) for shape in shapes]
        for number, which in enumerate(plan):
            if is_compared[number]:
                result, took[number], *speed = compared(which, tells[which])
                if which == usual[number]:
                    behind[number - number % PHASE].append((speed[0], speed[1]))
            else:
                result, took[number] = waited(which, tells[which])
            tiers[number] = int(result.tier_used)
        runtime.wait_for_compilation()
        expected = [(number // CALM) % len(given) for number in range(2 * CALM * len(given))]
        for number, (one, which) in enumerate(zip(expected, mixed(expected), strict=True)):
            if number % CALM < CALM // 2:
                _, found = waited(which)
                if one == which:
                    calm[which].append(found)
            else:
                _, _, *speed = compared(which)
                if one == which:
                    speeds[which].append((speed[0], speed[1]))
        stats = runtime.get_runtime_stats()
    steady = [float(np.median(one)) for one in calm]
    launched, fast = ([float(np.nanmedian([pair[way] for pair in one])) for one in speeds] for way in range(2))
    slower = took / np.asarray([steady[which] for which in plan])
    at_rest = [one / typical for found, typical in zip(calm, steady, strict=True) for one in found]
    with_launch, after = (
        [float(np.nanmedian([pair[way] for pair in found])) / ended[usual[shift]] for shift, found in behind.items()]
        for way, ended in ((0, launched), (1, fast))
    )
    highest = [number for number in range(CALLS) if tiers[number] == 3]
    if watcher is not None:
        watcher.tell(plan, usual, is_compared, steady)
    return {
        "p99": float(np.percentile(slower, 99)),
        "p99_without_first_200": float(np.percentile(slower[200:], 99)),
        "p99_without_compared": float(np.percentile(slower[~np.asarray(is_compared)], 99)),
        "p99_when_calm": float(np.percentile(at_rest, 99)),
        "slower_than_twice": int((slower > 2).sum()),
        "slowest": [[int(number), round(float(took[number]))] for number in sorted(np.argsort(-slower)[:80])],
        "after_shift_least": float(np.min(after)),
        "after_shifts": after,
        "after_shifts_launched": with_launch,
        "tiers_after_shifts": [sorted({int(one) for one in tiers[shift + 150 : shift + 200]}) for shift in behind],
        "first_at_tier3": highest[0] if highest else None,
        "steady_us": steady,
        "steady_against_baseline": fast,
        "steady_against_baseline_launched": launched,
        "calls": stats.total_executions,
        "tiers": [stats.tier1_executions, stats.tier2_executions, stats.tier3_executions],
        "events": stats.events,
    }


# An edit


def editing(device: str) -> dict[str, float]:
    """A kernel is edited in a process that has run it: seconds to its first result, and to that of its Tier 3."""
    given, folder = arrays(shapes_for(device)[0], device), Path(os.environ["TESSERA_CACHE_DIR"])
    folder.mkdir(parents=True, exist_ok=True)
    with MetaTracingRuntime() as runtime:
        tiered = runtime.tiered(imported("before", folder, "1.25"))
        for _ in range(100):
            tiered(*given, 0.125)
            synchronize(device)
        runtime.wait_for_compilation()
        third, began = 0.0, time.perf_counter()
        tiered = runtime.tiered(imported("edited", folder, "1.5"))
        tiered(*given, 0.125)
        synchronize(device)
        first = time.perf_counter() - began
        while not third and time.perf_counter() - began < 40:
            _, tier = tiered.call_with_tier(*given, 0.125)
            synchronize(device)
            third = time.perf_counter() - began if int(tier) == 3 else 0.0
    return {"first_s": first, "third_s": third or 40.0}


def imported(name: str, folder: Path, number: str) -> Any:
    """The kernel, from a file that is written now."""
    path = folder / f"{name}.py"
    path.write_text(EDITED.replace("NUMBER", number), "utf-8")
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.edited


PARTS: dict[str, Callable[[str], dict[str, Any]]] = {
    "costs": costs,
    "climbing": climbing,
    "at_once": at_once,
    "second": second,
    "workload": workload,
    "editing": editing,
}


def have_bytecode() -> None:
    """Processes find bytecode of the compiler, as they do wherever it was installed; cold is the compile cache alone.

    Where Python may not write any (PYTHONDONTWRITEBYTECODE), each process that compiles reads a thousand sources first.
    """
    for package in (ts, xdsl, np, llvmlite, ml_dtypes):
        compileall.compile_dir(package.__path__[0], quiet=2, workers=0)


def child(part: str, device: str, cache: Path) -> dict[str, Any]:
    environment = {**os.environ, "TESSERA_CACHE_DIR": str(cache), "CUDA_CACHE_PATH": str(cache / "driver")}
    command = [sys.executable, __file__, part, device]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode:
        print(done.stderr[-2000:], file=sys.stderr)
        return {}
    return json.loads(done.stdout.splitlines()[-1])


def measured(device: str) -> tuple[dict[str, Any], Bars]:
    """Everything, and the bars."""
    found: dict[str, Any] = {}
    have_bytecode()
    with tempfile.TemporaryDirectory() as folder:
        for part, cache in (
            ("costs", "warm"),
            ("climbing", "cold"),
            ("second", "cold"),
            ("at_once", "at once"),
            *(("workload", f"changing {number}") for number in range(RUNS)),
            ("editing", "edited"),
        ):
            path = Path(folder) / cache
            path.mkdir(exist_ok=True)
            made = child(part, device, path)
            print(part, json.dumps(made), flush=True)
            if part == "workload":
                made.pop("slowest", None)  # they were printed
                found.setdefault(part, []).append(made)
            else:
                found[part] = made
    return found, bars(found)


def median_of(runs: Sequence[float]) -> str:
    return f"median of {', '.join(f'{run:.3g}' for run in runs)}"


def bars(found: dict[str, Any]) -> Bars:
    made: Bars = {}

    def at_most(name: str, value: float | None, bar: float) -> None:
        value = float("inf") if value is None else value
        made[name] = {"found": value, "bar": bar, "holds": value <= bar}

    cost, climbed, again = found["costs"], found["climbing"], found["second"]
    if cost:
        at_most("tracing, percent", cost["tracing_percent"], 3.0)
        at_most("orchestration of a call, µs", cost["orchestration_us"], max(2.0, 0.02 * cost["call_us"]))
    for which, told in ((climbed, ""), (found["at_once"], ", by a runtime made then")):
        at_most(f"first call to tier 2{told}, s", which.get("tier2"), 2.0)
        at_most(f"first call to tier 3{told}, s", which.get("tier3"), 8.0)
    at_most("second process to tier 3, ms", again.get("ms") if again.get("tier") == 3 else None, 60.0)
    if runs := [run for run in found["workload"] if run]:
        # What else a host does counts as if we had done it: so one run says little.
        slow, least = ([run[name] for run in runs] for name in ("p99", "after_shift_least"))
        at_most(f"changing workload, p99 over the steady median, {median_of(slow)}", float(np.median(slow)), 2.0)
        speed = float(np.median(least))
        name = f"speed 200 calls after a shift, of the steady one, {median_of(least)}"
        made[name] = {"found": speed, "bar": 0.95, "holds": speed >= 0.95}
    if edit := found["editing"]:
        sooner = edit["third_s"] / edit["first_s"]
        made["first result of an edited kernel, times sooner than its tier 3"] = {
            "found": sooner,
            "bar": 10.0,
            "holds": sooner >= 10.0,
        }
    return made


if __name__ == "__main__":
    if sys.argv[1] == "workload" and "--slow" in sys.argv[3:]:
        from slow_calls import Watcher

        print(json.dumps(workload(sys.argv[2], Watcher(sys.argv[2]))))
    else:
        print(json.dumps(PARTS[sys.argv[1]](sys.argv[2])))
