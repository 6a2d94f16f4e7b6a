"""Suites with made-up figures, for the tests of everything that shows results."""

from __future__ import annotations

import random

from tessera.bench.results.definitions import BenchmarkConfig
from tessera.bench.results.results import SKIPPED, BenchmarkError, BenchmarkResult, BenchmarkSuiteResult

START = 1_750_000_000.0
FACTORS = {"tessera": 1.0, "torch_sdpa": 1.25, "inductor": 1.6, "numpy": 9.0}
STAGES = {"trace": 3.1, "graph": 5.6, "schedule": 2.2, "tile": 14.8, "target": 22.5, "machine code": 61.0}


def result(
    length: int, precision: str, implementation: str, noise: random.Random, count: int = 40, speed: float = 1.0
) -> BenchmarkResult:
    """Attention over `length`, with noise, a slow drift and a few late samples."""
    flops = 4.0 * 8 * length * length * 64
    peak = 180e9 if precision == "f32" else 700e9
    base = flops / (peak * 0.6) * 1e3 * FACTORS.get(implementation, 2.0) / speed + 0.01
    samples = [
        base * (1 + 0.02 * abs(noise.gauss(0, 1)) + 0.0008 * index + (0.2 if noise.random() < 0.04 else 0))
        for index in range(count)
    ]
    ordered = sorted(samples)
    median = ordered[len(ordered) // 2]
    moved = 4.0 * 8 * length * 64 * (4 if precision == "f32" else 2)
    error = 3e-7 if precision == "f32" else 2.1e-3
    ratio = FACTORS.get(implementation, 2.0) / FACTORS["torch_sdpa"]
    return BenchmarkResult(
        "flash_attention",
        {"batch": 1, "heads": 8, "length": length},
        BenchmarkConfig(),
        implementation=implementation,
        precision=precision,
        threads=2,
        latency_ms=median,
        throughput_ops_per_sec=flops / (median * 1e-3),
        memory_bandwidth_gbps=moved / median / 1e6,
        compute_utilization_percent=flops / (median * 1e-3) / peak * 100,
        compilation_time_ms=sum(STAGES.values()) if implementation == "tessera" else None,
        stages_ms={name: value * (1 + length / 4096) for name, value in STAGES.items()}
        if implementation == "tessera"
        else {},
        measurements_count=count,
        standard_deviation=0.02 * median,
        confidence_interval_95=(
            ordered[count // 2 - max(1, count // 8)],
            ordered[min(count - 1, count // 2 + count // 8)],
        ),
        samples_ms=samples,
        yardstick_ms=[0.5 + 0.01 * noise.random() for _ in samples],
        numerical_accuracy=error,
        reference_comparison={"error": error, "bound": 2e-6 if precision == "f32" else 4e-3, "max_abs_error": 1e-5},
        flops=flops,
        bytes_moved=moved,
        speedup=None if implementation == "torch_sdpa" else 1 / ratio,
        speedup_interval=None if implementation == "torch_sdpa" else (0.97 / ratio, 1.03 / ratio),
        baseline="torch_sdpa",
        conditions={"load": 0.8, "mhz": 2600.0},
        unavailable={"energy_joules": "no RAPL domain at /sys/class/powercap"},
    )


def suite(
    lengths: tuple[int, ...] = (256, 512, 1024),
    precisions: tuple[str, ...] = ("f32", "bf16"),
    implementations: tuple[str, ...] = tuple(FACTORS),
    *,
    seed: int = 1,
    speed: float = 1.0,
    trouble: bool = True,
) -> BenchmarkSuiteResult:
    """Every case; with trouble, one row failed and one was skipped."""
    noise = random.Random(seed)
    made = BenchmarkSuiteResult(suite_start_time=START + 86400 * seed, suite_end_time=START + 86400 * seed + 48.0)
    made.environment = {
        "processor": "Intel(R) Xeon(R) Processor @ 2.60GHz",
        "cores": 2,
        "affinity": [0, 1],
        "level": "amx",
        "memory_bytes": 25275125760,
        "python": "3.11.7 (CPython)",
        "tessera": "0.1.0",
        "numpy": "2.4.6",
        "llvmlite": "0.50.0",
        "torch": "2.13.0+cpu",
        "virtualised": True,
        "unavailable": {"governor": "no cpufreq in this virtual machine"},
    }
    made.ceilings = {"memory_gbps": 21.4, "flops_per_second": {"f32": 180e9, "bf16": 700e9}, "unavailable": {}}
    for length in lengths:
        for precision in precisions:
            for implementation in implementations:
                made.add(result(length, precision, implementation, noise, speed=speed))
    if trouble:
        made.add(_without_figures(lengths[-1], precisions[-1], "inductor", "crash", "expected rc 0, got signal 11"))
        made.add(_without_figures(lengths[-1], precisions[-1], "triton", SKIPPED, "triton is not installed"))
    return made


def _without_figures(length: int, precision: str, implementation: str, kind: str, message: str) -> BenchmarkError:
    return BenchmarkError(
        message,
        kind,
        timestamp=START,
        benchmark_name="flash_attention",
        problem_size={"batch": 1, "heads": 8, "length": length},
        precision=precision,
        implementation=implementation,
        threads=2,
    )
