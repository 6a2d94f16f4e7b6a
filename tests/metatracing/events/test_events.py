"""Events inside of kernels: counts equal brute force over the addresses of all lanes; what tracers make of them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tessera as ts
from tessera import Schedule, TesseraError, kernel, tile
from tessera.metatracing import (
    AttentionTrace,
    ComputeType,
    ExecutionPattern,
    ExecutionTier,
    GPUComputePatternTracer,
    GPUMemoryPatternTracer,
    InputProfile,
    KernelExecution,
    MemoryTracer,
    MetaTracingRuntime,
    PerformanceMonitor,
    RuntimeConfig,
)
from tessera.metatracing.events.counting import matrix_wavefronts, sectors, wavefronts
from tessera.stdlib import flash_attention, softmax

# Counting, against sets of bytes


def touched(addresses: list[int], size: int, unit: int) -> set[int]:
    """The units that some lanes touch, byte by byte."""
    return {(address + byte) // unit for address in addresses for byte in range(size)}


def banked(addresses: list[int], size: int) -> tuple[int, int]:
    """Wavefronts of a group of lanes, and the least that would do, word by word."""
    words = touched(addresses, size, 4)
    most = max(Counter(word % 32 for word in words).values(), default=0)
    return most, -(-len(words) // 32)


@st.composite
def warps(draw: st.DrawFn, size: int) -> tuple[Any, Any]:
    """Addresses of lanes: at steps along digits of the lane's number, or anywhere; some lanes are off."""
    if draw(st.booleans()):
        split = draw(st.sampled_from([1, 2, 4, 8, 16, 32]))
        low, high = (draw(st.integers(-40, 40)) * size for _ in range(2))
        lanes = np.arange(32)
        addresses = (1 << 14) + draw(st.integers(0, 63)) * size + lanes % split * low + lanes // split * high
    else:
        addresses = np.array(draw(st.lists(st.integers(0, 300), min_size=32, max_size=32))) * size
    active = np.array(draw(st.lists(st.booleans() | st.just(True), min_size=32, max_size=32)))
    return addresses.astype(np.int64)[None], active[None]


@settings(max_examples=150, deadline=None)
@given(st.data(), st.sampled_from([1, 2, 4, 8, 16]))
def test_sectors_are_those_that_bytes_lie_in(data: st.DataObject, size: int):
    addresses, active = data.draw(warps(size))
    chosen = addresses[active].tolist()
    assert sectors(addresses, active, size).tolist() == [len(touched(chosen, size, 32))]


@settings(max_examples=150, deadline=None)
@given(st.data(), st.sampled_from([4, 8, 16]))
def test_wavefronts_are_those_of_the_busiest_bank(data: st.DataObject, size: int):
    addresses, active = data.draw(warps(size))
    together = 128 // size  # wide accesses go in halves and quarters of a warp
    expected = [0, 0]
    for first in range(0, 32, together):
        part = slice(first, first + together)
        taken, least = banked(addresses[0, part][active[0, part]].tolist(), size)
        expected[0] += taken
        expected[1] += least
    assert [int(one[0]) for one in wavefronts(addresses, active, size)] == expected


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from([1, 2, 4]))
def test_wavefronts_of_matrices_are_those_of_eight_rows(data: st.DataObject, count: int):
    addresses, _ = data.draw(warps(16))
    active = np.ones((1, 32), bool)
    groups = [banked(addresses[0, first : first + 8].tolist(), 16) for first in range(0, 8 * count, 8)]
    expected = [sum(one) for one in zip(*groups, strict=True)]
    assert [int(one[0]) for one in matrix_wavefronts(addresses, active, count)] == expected


# What tracers say


@kernel.schedule(Schedule(block=(32, 32)))
def transpose(x: Any, y: Any):
    here = tile.context()
    row, col = tile.program_id(0) * here.m, tile.program_id(1) * here.n
    tile.store(y, tile.transpose(tile.load(x, at=(row, col), shape=(here.m, here.n))), at=(col, row))


def test_columns_are_not_coalesced():
    rows = KernelExecution.of(transpose[4, 4], ts.empty((128, 128)), ts.empty((128, 128)))
    columns = KernelExecution.of(transpose[4, 4], ts.empty((128, 128)).T, ts.empty((128, 128)))
    tracer = GPUMemoryPatternTracer()
    well, badly = tracer.trace_memory_patterns(rows), tracer.trace_memory_patterns(columns)
    assert not well.coalescing_issues
    assert well.efficiency() == 1.0
    assert {one.argument for one in badly.coalescing_issues} == {0}
    assert badly.efficiency(0) == 0.5
    assert badly.efficiency(1) == 1.0
    assert badly.moved(0) == 2 * well.moved(0)
    (pressure,) = well.register_pressure  # by ptxas
    assert 16 <= pressure.registers <= 255
    assert pressure.spilled_bytes == 0
    assert 0 < pressure.occupancy <= 1


def test_warp_groups_are_walked_one_program_instance_after_the_other():
    """Which program comes next is a number that threads hand to each other; copies are made by tensor maps."""
    heads = [ts.empty((2, 4, 512, 64), ts.bf16) for _ in range(4)]
    found = KernelExecution.of(flash_attention, *heads, 0.125, causal=True)
    assert found.device.persistent
    assert found.device.maps
    memory = GPUMemoryPatternTracer().trace_memory_patterns(found)
    compute = GPUComputePatternTracer().trace_compute_patterns(found)
    assert memory.is_complete
    assert compute.is_complete
    stored = sum(one.size_bytes for one in memory.global_accesses if one.argument == 3)
    assert stored == heads[3].nbytes
    operations = sum(one.operations for one in compute.tensor_core_ops)
    causal = 4 * 2 * 4 * 512 * 512 * 64 / 2
    assert causal < operations < 1.4 * causal  # tiles on the diagonal are computed as wholes
    assert compute.count(ComputeType.TENSOR_CORE_WMMA) == 0
    exponentials = compute.count(ComputeType.SPECIAL_FUNCTION) * 32
    assert exponentials > 2 * 4 * 512 * 512 / 2
    assert max(one.utilization_percent for one in compute.events) == 100.0


@pytest.mark.acceptance
def test_many_programs_are_sampled():
    """Blocks that go on with the next program are walked through some of them."""
    heads = [ts.empty((8, 8, 2048, 64), ts.bf16) for _ in range(4)]
    found = KernelExecution.of(flash_attention, *heads, 0.125)
    compute = GPUComputePatternTracer().trace_compute_patterns(found)
    assert found.programs > found.blocks
    operations = sum(one.operations for one in compute.tensor_core_ops)
    assert operations == pytest.approx(4.0 * 8 * 8 * 2048 * 2048 * 64, rel=0.02)


def test_accesses_that_are_recorded_one_by_one():
    tracer = MemoryTracer()
    tracer.record_global_memory_access(0, 4, is_write=False)  # before it begins
    tracer.begin_tracing()
    tracer.record_global_memory_access([4 * lane for lane in range(32)], 4, is_write=False)
    tracer.record_global_memory_access([128 * lane for lane in range(32)], 4, is_write=True)
    tracer.record_global_memory_access([4 * lane for lane in range(32)], 4, is_write=False)
    tracer.record_shared_memory_access([128 * lane for lane in range(32)], 4, is_write=False)
    tracer.end_tracing()
    first, second, again, shared = tracer.events()
    assert (first.is_coalesced, first.sectors, first.cache_hit_ratio) == (True, 4, 0.0)
    assert (second.is_coalesced, second.sectors) == (False, 32)
    assert again.cache_hit_ratio == 1.0
    assert (shared.bank_conflicts, shared.wavefronts) == (31, 32)
    profile = InputProfile.of("anything", ())
    trace = AttentionTrace(profile, ExecutionPattern(1.0), ExecutionTier.TIER1_INTERPRETER, 0)
    assert tracer.analyze_access_patterns(trace).execution_pattern.memory_accesses == tracer.events()


def test_a_monitor_tells_of_the_calls_in_between():
    runtime = MetaTracingRuntime(RuntimeConfig(background_compilation=False))
    monitor = PerformanceMonitor(runtime, peak_tflops=1.0)
    q, k, v, o = (ts.ones((1, 1, 16, 8)) for _ in range(4))
    with pytest.raises(TesseraError, match="nothing was monitored"):
        monitor.get_metrics()
    runtime.execute_flash_attention(q, k, v, o)
    monitor.begin_monitoring()
    for _ in range(3):
        runtime.execute_flash_attention(q, k, v, o)
    monitor.end_monitoring()
    runtime.execute_flash_attention(q, k, v, o)
    found = monitor.get_metrics()
    assert found.calls == 3
    assert found.memory_bandwidth_gbps is not None
    assert found.compute_utilization is not None
    assert 0 < found.compute_utilization < 1
    assert found.registers_per_thread is None  # a CPU has none to tell of


def test_what_has_no_threads_is_refused():
    program, values = softmax.program_for((ts.ones((4, 8)),), {}, _cpu())
    with pytest.raises(TesseraError, match="a program of the CPU"):
        KernelExecution.launched(program.executable, values)


def _cpu() -> Any:
    from tessera.tile.calls.settings import settings as here

    return here()
