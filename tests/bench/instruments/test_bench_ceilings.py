"""Tests measured ceilings: the work is really done, it is what it is counted as, and nothing real is far above it."""

from __future__ import annotations

import os
import re
import time
from functools import cache
from typing import Any

import numpy as np
import pytest

from tessera.bench.instruments import ceilings
from tessera.bench.results.definitions import BenchError
from tessera.runtime.native import pool
from tessera.targets.cpu import features, instructions
from tessera.targets.llvm import machine

SECONDS = 0.2
LEVELS = [level for level in features.LEVELS if features.has(level)]


@cache
def measured(threads: int) -> dict[str, Any]:
    return ceilings.measure(threads, ("f32", "bf16", "f64", "f16"), seconds=SECONDS)


def test_every_ceiling_is_there_or_has_a_reason() -> None:
    found = measured(1)
    assert found["threads"] == 1
    rates = found["flops_per_second"]
    assert all(rate > 1e8 for rate in rates.values())
    assert set(rates) | set(found["unavailable"]) >= {"f32", "bf16", "f64", "f16"}
    assert found["memory_gbps"] is None or found["memory_gbps"] == pytest.approx(
        max(found["memory_read_gbps"], found["memory_triad_gbps"])
    )
    assert found["memory_gbps"] is not None or "memory_gbps" in found["unavailable"]
    assert set(found["how"]) == {*rates, *({"memory_gbps"} if found["memory_gbps"] else ())}


def test_single_precision_is_about_twice_as_fast_as_double() -> None:
    """The best of some tries: a machine that does other work may let none of a short one's repeats alone."""
    tries = [ceilings.measure(1, ("f32", "bf16", "f64"), seconds=SECONDS)["flops_per_second"] for _ in range(3)]
    best = {precision: max(rates[precision] for rates in tries) for precision in tries[0]}
    assert 1.2 < best["f32"] / best["f64"] < 3.5
    if features.host_level() == "amx":
        assert best["bf16"] > 3 * best["f32"]


def test_a_matrix_product_is_not_far_above_the_ceiling() -> None:
    """Generous: other work may slow down either of them."""
    pool_threads = pool.threads()
    ceiling = ceilings.measure(pool_threads, ("f32",), seconds=SECONDS)["flops_per_second"]["f32"]
    a = np.random.default_rng(0).standard_normal((768, 768), np.float32)
    best = min(_seconds(a) for _ in range(5))
    assert ceiling >= 0.5 * 2 * 768**3 / best


def _seconds(a: Any) -> float:
    began = time.perf_counter()
    np.matmul(a, a)
    return time.perf_counter() - began


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("precision", ["f32", "f64", "f16", "bf16", "i8"])
def test_the_loop_has_the_arithmetic_that_is_counted(level: str, precision: str) -> None:
    """From the instructions: operations per iteration by their names and registers, and no spills to the stack."""
    unit = ceilings.unit_of(precision, level)
    if isinstance(unit, str):
        assert precision == "i8"
        return
    processor, extras = features.target(level)
    assembly = machine.assembly(unit.text, cpu=processor, features=extras)
    body = instructions.functions_of(assembly)["work"]
    assert sum(map(_operations, body)) == unit.operations
    accesses = instructions.memory_accesses(body)
    assert not any(name.startswith("stack_vector") for name in accesses)


def _operations(one: instructions.Instruction) -> int:
    """Of one instruction, independently of how the loop was written."""
    if one.arm:
        products = {"fmla": 1, "sdot": 4, "bfmmla": 4, "smmla": 8}.get(one.name, 0)
        return 2 * products * int(one.operands[0].partition(".")[2][:-1]) if products else 0
    if one.name.startswith("tdp"):
        return 2 * 16 * 16 * (64 if one.name == "tdpbssd" else 32)
    if not (found := re.match(r"(?:vf(?P<fma>madd)|v?(?:mul|add)|v(?P<dot>dpbf16))\w*p(?P<element>[sdh])$", one.name)):
        return 0
    bits = {"z": 512, "y": 256, "x": 128}[one.operands[-1][1]]
    lanes = bits // {"s": 32, "d": 64, "h": 16}[found["element"]]
    return lanes * (4 if found["dot"] else 2 if found["fma"] else 1)


def test_the_memory_kernels_touch_all_of_their_slice() -> None:
    vector = f"<{features.lanes(features.level(), 64)} x double>"
    part = 3 << 20

    def run(text: str, chunks: int) -> None:
        work = ceilings.launcher(text, features.level(), ("array", "array", "i64", "i64"), 2)
        assert work(buffer, results, chunks, part) == 0

    buffer, results = ceilings.aligned_bytes(3 * part), ceilings.aligned_bytes(4096 * pool.MOST_THREADS)
    numbers = buffer.view(np.float64)
    run(ceilings.fill_text(vector), 9)
    assert (numbers == 0.5).all()
    third = len(numbers) // 3
    numbers[third : 2 * third] = 2.0
    run(ceilings.triad_text(vector), 3)
    assert (numbers[2 * third :] == 2.5).all()
    assert (numbers[:third] == 0.5).all()


def test_affinity_and_threads_are_as_before() -> None:
    before, allowed = pool.threads(), os.sched_getaffinity(0)
    found = ceilings.measure(before + 1, ("f32",), seconds=0.02)
    assert found["threads"] == before + 1
    assert pool.threads() == before
    assert os.sched_getaffinity(0) == allowed
    left = [affinity for task in os.listdir("/proc/self/task") if (affinity := affinity_of(int(task))) is not None]
    assert left
    assert all(affinity == allowed for affinity in left)


def affinity_of(task: int) -> set[int] | None:
    """Where a thread may run; None where it has ended meanwhile, as threads of the pool do that are needed no more."""
    try:
        return os.sched_getaffinity(task)
    except ProcessLookupError:
        return None


def test_no_memory_for_the_buffer_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ceilings, "available_memory_bytes", lambda: 1 << 20)
    found = ceilings.measure(1, (), seconds=0.02)
    assert found["memory_gbps"] is None
    assert "larger than the caches" in found["unavailable"]["memory_gbps"]


def test_unknown_precisions_and_impossible_threads() -> None:
    found = ceilings.measure(1, ("f8e4m3",), seconds=0.02)
    assert found["flops_per_second"] == {}
    assert "no unit for f8e4m3" in found["unavailable"]["f8e4m3"]
    with pytest.raises(BenchError, match="above 0"):
        ceilings.measure(0)
