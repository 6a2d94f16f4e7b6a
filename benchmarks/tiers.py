"""Attention in tiers against the frozen baseline, and what tiers cost, into benchmarks/results/<name>.json and .md.

    python benchmarks/tiers.py --device cuda:0 --name h200-tiers
    taskset -c 0,1 python benchmarks/tiers.py --device cpu --parts speeds --only 8x512x64

The baseline is `metatracing.attention.BASELINE`: the specification's tile configuration, sizes open, no traces. A row
has the time of a call at every tier, as `execute_flash_attention` makes it, the baseline's and that of the kernel under
the schedule that the compiler chooses without traces; where torch is there, also that of cuDNN, or on a CPU of torch's
`scaled_dot_product_attention` with as many threads. Entrants are interleaved, so that all see the same clocks.
Ratios are of neighbours, with intervals and p-values of `tessera.bench.results.statistics`.
The other parts are in `tier_life.py`.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tier_life

import tessera as ts
from tessera import subprocesses
from tessera.bench.configs import InputConfiguration, StandardBenchmarkConfigs
from tessera.bench.instruments import ceilings
from tessera.bench.instruments.hardware import environment
from tessera.bench.results import statistics
from tessera.bench.validation import subjects
from tessera.bench.validation.report import named
from tessera.errors import TesseraError
from tessera.ir.structural_hash import structural_hash
from tessera.metatracing import MetaTracingRuntime, RuntimeConfig
from tessera.metatracing.attention import BASELINE, BASELINE_HASH
from tessera.metatracing.clients.kernels import KernelClient
from tessera.metatracing.clients.worker import build
from tessera.runtime.native import pool
from tessera.stdlib import flash_attention
from tessera.tiers.client import facts_of
from tessera.tiers.sites.candidates import tier2_levels, tier3_levels

HERE = Path(__file__).parent
SOON: dict[str, Any] = {
    "background_compilation": False,
    "tier2_compilation_threshold_ms": 0.001,
    "tier3_specialization_threshold_ms": 0.002,
    "persist": False,
    "contest_rounds": 9,
}
BOUNDS = {"f32": 2e-6, "f16": 5e-4, "bf16": 4e-3, "f8e4m3": 6e-2}
PER_CLOCK = {"f16": 4096, "bf16": 4096, "f8e4m3": 8192}
"""Operations of the tensor cores of a multiprocessor."""
BARS = {"tier1": 0.7, "tier2 mean": 1.15, "tier3 mean": 1.3, "tier3": 1.0, "cudnn": 1.1}
PEERS = {"cudnn": "cuDNN", "sdpa": "torch"}
SETTLE_SECONDS, LONGEST_SECONDS, AWAKE_SECONDS = 0.02, 0.3, 0.003
SHORT_SECONDS = 0.002
"""Calls on a CPU that take less are sampled by the median of several runs."""
SPEEDS = ("tier1", "tier2", "tier3", "untraced")


@dataclass(frozen=True)
class Problem(subjects.Problem):
    """One configuration with its arrays, which are drawn where they are needed."""

    @staticmethod
    def of(config: InputConfiguration, device: str) -> Problem:
        shape = (config.batch_size, config.num_heads, config.seq_len, config.head_dim)
        dtype = getattr(ts, config.dtype)
        q, k, v = (_drawn(shape, dtype, device, seed) for seed in range(3))
        return Problem(config, device, (q, k, v, ts.empty(shape, dtype, device=device)))

    @property
    def scale(self) -> float:
        return self.params.scale(self.config.head_dim)

    @property
    def name(self) -> str:
        return named(self.config)


def _drawn(shape: tuple[int, ...], dtype: ts.DType, device: str, seed: int) -> ts.Tensor:
    if device == "cpu":
        return ts.randn(shape, dtype, seed=seed)
    from tessera.bench.instruments.libraries import library

    torch = library("torch")  # gigabytes are drawn where they are needed
    generator = torch.Generator(device=device).manual_seed(seed)
    kinds = {"f16": torch.float16, "bf16": torch.bfloat16, "f8e4m3": torch.float8_e4m3fn}
    drawn = torch.randn(shape, device=device, dtype=torch.float16, generator=generator).to(kinds[str(dtype)])
    if dtype.bits > 8:
        return ts.from_dlpack(drawn)
    found = ts.from_dlpack(drawn.view(torch.uint8))
    return ts.Tensor.wrap(found.geometry.view(dtype.storage), dtype, found.device, found.buffer)


# Climbing


def settled(problem: Problem, config: RuntimeConfig, wanted: int, seconds: float) -> MetaTracingRuntime:
    """A runtime that has reached what it will reach for a problem."""
    runtime, until = MetaTracingRuntime(config), time.perf_counter() + seconds
    tiers: list[int] = []
    while time.perf_counter() < until:
        tiers.append(int(runtime.execute_flash_attention(*problem.arrays, problem.params).tier_used))
        tier_life.synchronize(problem.device)
        if len(tiers) % 8:  # programs compete on calls that follow each other, as those of users do
            continue
        sites = runtime.sites()
        open_ = any(one.is_working or one.recording.pending for one in sites)
        if not open_ and len(tiers) > 12 and (tiers[-8:] == [wanted] * 8 or runtime.counts["contests"] >= wanted - 1):
            break
    return runtime


def shipments(problem: Problem) -> Iterator[bytes]:
    """What climbing will want to be compiled: so it can be done beforehand, by many processes."""
    client = KernelClient(flash_attention)
    call = client.call((*problem.arrays, problem.scale), {"causal": problem.config.is_causal})
    assert call is not None
    words = tuple(sorted(facts_of(client.paths, call.described)))
    levels = dict.fromkeys(tier2_levels(client, call, RuntimeConfig.candidates))
    for schedule in client.schedules(call)[: RuntimeConfig.candidates]:
        levels |= dict.fromkeys(tier3_levels(client, call, words, schedule, {}, RuntimeConfig.candidates))
    for kernel, chosen in ((client, list(levels)), (KernelClient(flash_attention.with_schedule(BASELINE)), [])):
        for level in chosen or tier2_levels(kernel, call, 1):
            packed = kernel.request(call, [level])
            assert packed is not None
            yield packed


def compile_beforehand(problems: Sequence[InputConfiguration], device: str, processes: int) -> float:
    began = time.perf_counter()
    packed: list[bytes] = []
    for config in problems:
        packed += shipments(Problem.of(config, device))
    with subprocesses.spawning(), ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        for answer in pool.map(build, packed):
            if (wrong := json.loads(answer)) != [None]:
                print("  not compiled:", wrong, flush=True)
    return time.perf_counter() - began


# Speeds


def entrants(problem: Problem) -> tuple[dict[str, Callable[[], Any]], dict[str, str]]:
    """Every way to compute a problem, and what tiers came to."""
    found = {"baseline": problem.plainly(flash_attention.with_schedule(BASELINE))}
    found["untraced"] = problem.plainly(flash_attention)
    for call in found.values():
        call()
    o = problem.arrays[3]
    expected, said = looked_at(o), dict[str, str]()
    limits: dict[int, dict[str, bool]] = {1: {"enable_tier2_compilation": False, "enable_tier3_specialization": False}}
    limits |= {2: {"enable_tier3_specialization": False}, 3: {}}
    for tier, less in limits.items():
        runtime = settled(problem, RuntimeConfig(**SOON, **less), tier, 30.0)
        found[f"tier{tier}"] = problem.by(runtime)
        clear(o)
        found[f"tier{tier}"]()
        away = np.linalg.norm(looked_at(o) - expected) / np.linalg.norm(expected)
        if not away <= 2 * BOUNDS[problem.config.dtype]:
            raise SystemExit(f"{problem.name}, tier {tier}: off by {away:.1e}")
        (site,) = runtime.sites()
        said[f"tier{tier}"] = str(site.programs[0].level)
    return found, said


def looked_at(result: ts.Tensor) -> Any:
    """The last head of a result."""
    return result[-1, -1].cpu().numpy().astype(np.float64)


def clear(result: ts.Tensor) -> None:
    """Zeros the output, so that the last result is not taken for the next one."""
    if result.device.kind == "cpu":
        result.numpy()[...] = 0
    else:
        backend: Any = result.device.backend
        backend.fill_zeros(result.pointer, result.nbytes)


def cudnn(problem: Problem) -> Callable[[], Any] | None:
    from tessera.bench.instruments.libraries import library

    if problem.config.dtype not in ("f16", "bf16"):
        return None
    torch, ways = library("torch"), library("torch.nn.attention")
    q, k, v = (torch.from_dlpack(x) for x in problem.arrays[:3])
    run = torch.nn.functional.scaled_dot_product_attention

    def call() -> Any:
        with ways.sdpa_kernel(ways.SDPBackend.CUDNN_ATTENTION):
            return run(q, k, v, is_causal=problem.config.is_causal)

    return call


def sampled_on_gpu(problem: Problem, calls: dict[str, Callable[[], Any]], seconds: float) -> dict[str, list[float]]:
    """Milliseconds of a call, in graphs of several calls, all entrants interleaved."""
    from tessera.bench.cuda.device import TorchGpu

    gpu = TorchGpu()
    peer = cudnn(problem)
    if peer is not None:
        for _ in range(3):
            peer()
    about = problem.operations / 5e11
    count = max(1, min(40, math.ceil(0.4 / about)))
    graphs = {name: gpu.capture(call, count, ours=True) for name, call in calls.items()}
    if peer is not None:
        graphs["cudnn"] = gpu.capture(peer, count, ours=False)
    for graph in graphs.values():
        graph.replay()
    gpu.synchronize()
    samples: dict[str, list[float]] = {name: [] for name in graphs}
    random, until, rounds = np.random.default_rng(0), time.perf_counter() + seconds, 0
    while rounds < 12 or (time.perf_counter() < until and rounds < 40):
        rounds += 1
        marks: list[tuple[str, Any, Any]] = []
        for name in random.permutation(list(graphs)):
            first, last = gpu.event(), gpu.event()
            first.record()
            graphs[name].replay()
            last.record()
            marks.append((name, first, last))
        gpu.synchronize()
        for name, first, last in marks:
            samples[name].append(first.milliseconds_until(last) / count)
    graphs.clear()
    gpu.release()
    return samples


def sdpa(problem: Problem) -> Callable[[], Any] | None:
    """Attention of torch on a CPU, on as many threads."""
    from tessera.bench.instruments.libraries import library

    try:
        torch = library("torch")
    except (ImportError, TesseraError):
        return None
    torch.set_num_threads(pool.threads())
    q, k, v = (torch.from_dlpack(x) for x in problem.arrays[:3])
    run = torch.nn.functional.scaled_dot_product_attention
    return lambda: run(q, k, v, is_causal=problem.config.is_causal)


def sampled_on_cpu(problem: Problem, calls: dict[str, Callable[[], Any]], seconds: float) -> dict[str, list[float]]:
    """Milliseconds of a call, all entrants interleaved; of short calls, each is the median of up to five."""

    def took(call: Callable[[], Any]) -> float:
        began = time.perf_counter_ns()
        call()
        return (time.perf_counter_ns() - began) / 1e6

    peer = sdpa(problem)
    if peer is not None:
        peer()
        if (long := took(peer)) > 1e3 * LONGEST_SECONDS:
            print(f"torch takes {long:.0f} ms and is left out", flush=True)
            peer = None
    samples: dict[str, list[float]] = {name: [] for name in (*calls, *(["sdpa"] if peer else []))}
    random, until, rounds = np.random.default_rng(0), time.perf_counter() + seconds, 0
    repeats = 1 + 2 * round(min(2.0, 1e3 * SHORT_SECONDS / took(calls["baseline"])))
    while rounds < 12 or (time.perf_counter() < until and rounds < 100):
        rounds += 1
        if peer is not None:
            peer()
            samples["sdpa"].append(float(np.median([took(peer) for _ in range(repeats)])))
            time.sleep(SETTLE_SECONDS)  # its threads spin for a while before they fall asleep
        # A thread that has slept is slow at first.
        awake = time.perf_counter() + AWAKE_SECONDS
        while time.perf_counter() < awake:
            calls["baseline"]()
        found: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(repeats):
            for name in random.permutation(list(calls)):
                found[name].append(took(calls[name]))
        for name, one in found.items():
            samples[name].append(float(np.median(one)))
    return samples


@dataclass(frozen=True)
class Roof:
    """The best that a device can do."""

    operations: dict[str, float]
    bytes_per_second: float
    how: str

    @staticmethod
    def of(device: str) -> Roof:
        if device == "cpu":
            found = ceilings.measure(precisions=("f32", "bf16"), seconds=1.0)
            return Roof(found["flops_per_second"], (found["memory_gbps"] or math.nan) * 1e9, "measured")
        from tessera.bench.instruments.gpu_conditions import gpu_environment

        about = gpu_environment()
        clock = 1e6 * float(about.get("most_sm_mhz") or 1980)
        rates = {name: about["multiprocessors"] * clock * each for name, each in PER_CLOCK.items()}
        return Roof(rates, 4.8e12, f"tensor cores at {clock / 1e6:.0f} MHz, 4.8 TB/s")

    def headroom(self, problem: Problem, milliseconds: float) -> float:
        """How many times faster the device could be at best."""
        rate = self.operations.get(problem.config.dtype, math.nan)
        return milliseconds / 1e3 / max(problem.operations / rate, problem.moved / self.bytes_per_second)


def speed(problem: Problem, seconds: float, roof: Roof) -> dict[str, Any]:
    calls, said = entrants(problem)
    on_cpu = problem.device == "cpu"
    samples = sampled_on_cpu(problem, calls, seconds) if on_cpu else sampled_on_gpu(problem, calls, seconds)
    row: dict[str, Any] = {"name": problem.name, "set": problem.config.description, "levels": said}
    row["ms"] = {name: float(np.median(one)) for name, one in samples.items()}
    row["samples"] = len(samples["baseline"])
    row["headroom"] = {name: roof.headroom(problem, row["ms"][name]) for name in ("baseline", "tier3")}
    row["against baseline"] = {name: compared(samples[name], samples["baseline"]) for name in SPEEDS}
    row["tier3 against untraced"] = compared(samples["tier3"], samples["untraced"])
    for peer in PEERS.keys() & samples.keys():
        # A graph that nothing was captured into is quicker than any machine.
        if roof.headroom(problem, row["ms"][peer]) < 1:
            raise TesseraError(f"{PEERS[peer]} took {1e3 * row['ms'][peer]:.1f} µs, less than the device needs at best")
        row[f"tier3 against {peer}"] = compared(samples["tier3"], samples[peer])
    return row


def compared(ours: Sequence[float], theirs: Sequence[float]) -> dict[str, Any]:
    """How many times faster ours is, by pairs of neighbours."""
    found = statistics.ratio(ours, theirs)
    interval = found.interval
    return {"ratio": found.estimate, "interval": [interval.low, interval.high], "p": found.p_value}


def told(row: dict[str, Any]) -> str:
    ratios = "  ".join(f"{name} {one['ratio']:.3f}" for name, one in row["against baseline"].items())
    said = f"{row['name']:34} baseline {1e3 * row['ms']['baseline']:.1f} µs  {ratios}"
    said += f"  tier3/untraced {row['tier3 against untraced']['ratio']:.3f}"
    for name in PEERS:
        if (peer := row.get(f"tier3 against {name}")) is not None:
            said += f"  tier3/{name} {peer['ratio']:.3f} [{peer['interval'][0]:.3f}, {peer['interval'][1]:.3f}]"
    return said + f"  headroom {row['headroom']['tier3']:.2f}"


def mean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Bars and whether they hold."""
    ratios = {name: [row["against baseline"][name]["ratio"] for row in rows] for name in SPEEDS}
    larger = [row for row in rows if row["set"].startswith(("Medium", "Large"))]
    peers = [row["tier3 against cudnn"]["ratio"] for row in larger if "tier3 against cudnn" in row]
    found: dict[str, Any] = {
        "tier 1, least": (min(ratios["tier1"]), BARS["tier1"]),
        "tier 2, geometric mean": (mean(ratios["tier2"]), BARS["tier2 mean"]),
        "tier 3, geometric mean": (mean(ratios["tier3"]), BARS["tier3 mean"]),
        "tier 3, least": (min(ratios["tier3"]), BARS["tier3"]),
        "tier 3 against untraced, least": (min(row["tier3 against untraced"]["ratio"] for row in rows), 1.0),
    }
    if peers:
        found["tier 3 against cuDNN, medium and large, least"] = (min(peers), BARS["cudnn"])
    return {name: {"found": value, "bar": bar, "holds": bool(value >= bar)} for name, (value, bar) in found.items()}


# Tables


def markdown(record: dict[str, Any], title: str) -> str:
    lines = [f"# {title}", "", f"Baseline: {record['baseline']['schedule']}, hash `{record['baseline']['hash']}`.", ""]
    if rows := record.get("speeds"):
        other = next((name for name in PEERS if f"tier3 against {name}" in rows[0]), "cudnn")
        columns = (
            "configuration",
            "baseline",
            "tier 1",
            "tier 2",
            "tier 3",
            "interval, p",
            "over untraced",
            f"over {PEERS[other]}",
        )
        lines += [f"| {' | '.join((*columns, 'headroom'))} |", "|---" + "|---:" * len(columns) + "|"]
        for row in rows:
            one, peer = row["against baseline"], row.get(f"tier3 against {other}")
            third = one["tier3"]
            low, high = third["interval"]
            parts = [row["name"], f"{1e3 * row['ms']['baseline']:.1f} µs"]
            parts += [f"{one[name]['ratio']:.3f}" for name in ("tier1", "tier2", "tier3")]
            parts += [f"{low:.3f}–{high:.3f}, {third['p']:.1e}", f"{row['tier3 against untraced']['ratio']:.3f}"]
            parts += ["" if peer is None else f"{peer['ratio']:.3f}", f"{row['headroom']['tier3']:.2f}"]
            lines.append(f"| {' | '.join(parts)} |")
        lines.append("")
    lines += ["| bar | found | wanted | |", "|---|---:|---:|---|"]
    for name, one in record["bars"].items():
        lines.append(f"| {name} | {one['found']:.4g} | {one['bar']:g} | {'holds' if one['holds'] else 'MISSED'} |")
    about = record["environment"]
    device, commit = about.get("gpu", about.get("processor")), str(about.get("commit"))[:12]
    threads = f", {record['threads']} threads" if "threads" in record else ""
    lines += ["", f"{device}{threads}, {about.get('date')}, commit {commit}."]
    return "\n".join(lines) + "\n"


def baseline_hash() -> str:
    """Of the program that tiers are compared with: it is what it has always been."""
    x = ts.empty((2, 2, 256, 64), ts.f16)
    lowered = flash_attention.with_schedule(BASELINE).lower(x, x, x, x, 0.125, causal=True)
    found = structural_hash(lowered.module, {})[: len(BASELINE_HASH)]
    if found != BASELINE_HASH:
        raise SystemExit(f"the baseline has changed: its program is {found}, it was {BASELINE_HASH}")
    return found


def configurations(device: str, only: Sequence[str]) -> list[InputConfiguration]:
    sets = StandardBenchmarkConfigs
    found = sets.get_cpu_configs()
    if device != "cpu":
        found = [*sets.get_small_configs(), *sets.get_medium_configs(), *sets.get_large_configs()]
        found += [*sets.get_variable_length_configs(), *sets.get_mixed_precision_configs()]
    distinct = {(*one.size.values(), one.dtype): one for one in reversed(found)}
    chosen = [one for one in found if distinct[(*one.size.values(), one.dtype)] is one]
    named = [(one, f"{one.batch_size}x{one.num_heads}x{one.seq_len}x{one.head_dim} {one.dtype}") for one in chosen]
    return [one for one, name in named if not only or any(word in name for word in only)]


def write(record: dict[str, Any], options: argparse.Namespace) -> None:
    if options.name:
        path = options.folder / f"{options.name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(record, indent=1, default=str) + "\n", "utf-8")
        path.with_suffix(".md").write_text(markdown(record, options.name), "utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description="attention in tiers against the frozen baseline")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--parts", default="speeds,life")
    parser.add_argument("--only", action="append", default=[], help="configurations whose name contains this")
    parser.add_argument("--seconds", type=float, default=1.5, help="of sampling, for each configuration")
    parser.add_argument("--budget", type=float, default=math.inf, help="seconds after which no other one is begun")
    parser.add_argument("--processes", type=int, default=0, help="that compile everything beforehand")
    parser.add_argument("--name", help="of the result files; without it nothing is written")
    parser.add_argument("--folder", type=Path, default=HERE / "results")
    options = parser.parse_args()
    began = time.perf_counter()
    record: dict[str, Any] = {
        "baseline": {"schedule": str(BASELINE), "hash": baseline_hash()},
        "environment": environment(),
        "bars": {},
    }
    if options.device == "cpu":
        record["threads"] = pool.threads()
    else:
        from tessera.bench.instruments.gpu_conditions import gpu_environment

        record["environment"] |= gpu_environment()
    if "life" in options.parts:
        record["life"], bars = tier_life.measured(options.device)
        record["bars"] |= bars
    if "speeds" in options.parts:
        roof = Roof.of(options.device)
        record["roof"] = {"operations": roof.operations, "bytes": roof.bytes_per_second, "how": roof.how}
        chosen = configurations(options.device, options.only)
        if options.processes:
            took = compile_beforehand(chosen, options.device, options.processes)
            print(f"compiled beforehand in {took:.1f} s", flush=True)
        rows: list[dict[str, Any]] = []
        failures: list[str] = []
        record |= {"speeds": rows, "failures": failures}
        for config in chosen:
            if time.perf_counter() - began > options.budget:
                print("no time for", config.description)
                continue
            try:
                rows.append(speed(Problem.of(config, options.device), options.seconds, roof))
            except (TesseraError, RuntimeError) as error:
                print(f"{config.description}: {error}", flush=True)
                failures.append(f"{config.description}: {error}")
                continue
            print(told(rows[-1]), rows[-1]["levels"]["tier3"][:60], flush=True)
            write(record, options)  # a run that is ended early leaves what it found
        record["bars"] |= summary(rows) if rows else {}
    for name, one in record["bars"].items():
        print(f"{'holds ' if one['holds'] else 'MISSED'} {name}: {one['found']:.4g} (bar {one['bar']:g})", flush=True)
    write(record, options)
    return 0 if all(one["holds"] for one in record["bars"].values()) else 4


if __name__ == "__main__":
    with suppress(BrokenPipeError):
        sys.exit(main())
