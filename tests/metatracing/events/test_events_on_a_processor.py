"""Events of programs on a processor: lines of caches against an enumeration of bytes, and registers of emitted code."""

from __future__ import annotations

from collections import Counter
from math import prod
from typing import Any

import numpy as np
import pytest

import tessera as ts
from tessera import Schedule, TesseraError, kernel, knobs, tile
from tessera.interpreters.sanitizers.access_trace import Trace
from tessera.interpreters.sanitizers.checks import Checks, checking
from tessera.metatracing import AccessType, HostExecution, HostMemoryPatternTracer, HostResources
from tessera.metatracing.events import host
from tessera.stdlib import flash_attention
from tessera.targets.cpu import instructions


@kernel.schedule(Schedule(block=(32, 32)))
def transpose(x: Any, y: Any):
    here = tile.context()
    row, col = tile.program_id(0) * here.m, tile.program_id(1) * here.n
    tile.store(y, tile.transpose(tile.load(x, at=(row, col), shape=(here.m, here.n))), at=(col, row))


def apart(*shape: int, dtype: Any = ts.f32) -> Any:
    """An array whose rows do not touch: so accesses show where one ends."""
    wide = ts.randn((*shape[:-1], shape[-1] + 3), seed=0).to(dtype)
    return wide[..., : shape[-1]]


def enumerated(call: Any, arrays: list[Any]) -> dict[tuple[int, str], Counter[str]]:
    """Rows, bytes, lines and new ones of each argument: byte by byte, from what the interpreter accessed."""
    trace = Trace()
    with knobs.interpret.using(True), checking(Checks(), trace=trace):
        call()
    counts: dict[tuple[int, str], Counter[str]] = {}
    seen: dict[int, set[int]] = {}
    for access in trace:
        array = arrays[access.argument]
        itemsize, along = array.dtype.storage.itemsize, array.strides[-1]
        start = array.meta.alignment if array.meta.alignment < 64 else 0
        mine = counts.setdefault((access.argument, access.kind), Counter())
        flat = np.asarray(access.offsets).ravel().tolist()
        ends = [index for index in range(1, len(flat)) if flat[index] - flat[index - 1] != along]
        for first, last in zip([0, *ends], [*ends, len(flat)], strict=True):
            touched = {
                (start + itemsize * offset + byte) // 64 for offset in flat[first:last] for byte in range(itemsize)
            }
            before = seen.setdefault(access.argument, set())
            mine.update(rows=1, bytes=itemsize * (last - first), lines=len(touched), new=len(touched - before))
            before |= touched
    return counts


CASES: dict[str, Any] = {
    "rows": lambda: (transpose[3, 2], [apart(70, 50), apart(50, 70)], ()),
    "columns": lambda: (transpose[2, 3], [apart(70, 50).T, apart(70, 50)], ()),
    "halves": lambda: (transpose[3, 2], [apart(70, 50, dtype=ts.f16), apart(50, 70, dtype=ts.f16)], ()),
    # Not causal: what a mask hides is not computed, and the interpreter does not know that.
    "attention": lambda: (
        flash_attention.with_schedule(Schedule(block=(16, 8))),
        [apart(1, 2, 40, 8) for _ in range(4)],
        (0.3,),
    ),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.acceptance] * (name == "attention")) for name in CASES]
)
def test_lines_are_those_that_bytes_lie_in(name: str):
    form, arrays, numbers = CASES[name]()
    found = HostExecution.of(form, *arrays, *numbers)
    memory = HostMemoryPatternTracer().trace_memory_patterns(found)
    assert memory.is_complete
    counts: dict[tuple[int, str], Counter[str]] = {}
    for one in memory.global_accesses:
        kind = "read" if one.access_type is AccessType.GLOBAL_LOAD else "write"
        assert one.argument is not None
        assert one.sectors is not None
        new = round((1 - one.cache_hit_ratio) * one.sectors)
        mine = counts.setdefault((one.argument, kind), Counter())
        mine.update(rows=one.requests, bytes=one.size_bytes, lines=one.sectors, new=new)
    assert counts == enumerated(lambda: form(*arrays, *numbers), arrays)


def test_columns_take_a_line_for_each_element():
    x, y = ts.empty((128, 128)), ts.empty((128, 128))
    tracer = HostMemoryPatternTracer()
    well = tracer.trace_memory_patterns(HostExecution.of(transpose[4, 4], x, y))
    badly = tracer.trace_memory_patterns(HostExecution.of(transpose[4, 4], x.T, y))
    assert not well.coalescing_issues
    assert well.moved() == 2 * x.nbytes
    (issue,) = badly.coalescing_issues
    assert (issue.argument, issue.sectors_per_request, issue.unit_bytes) == (0, 32, 64)
    assert issue.coalescing_efficiency == 4 / 64
    assert issue.cache_hit_ratio == 15 / 16  # the other elements of a line come with the next rows
    assert (well.shared_accesses, well.bank_conflicts) == ((), ())


@pytest.mark.acceptance
def test_what_is_read_again_is_reused():
    heads = [ts.empty((1, 1, 64, 16)) for _ in range(4)]
    whole = HostExecution.of(flash_attention.with_schedule(Schedule(block=(16, 64))), *heads, 0.25)
    memory = HostMemoryPatternTracer().trace_memory_patterns(whole)
    by_argument = {one.argument: one for one in memory.global_accesses}
    assert by_argument[0].reuse == 1.0
    assert by_argument[1].reuse == 4.0  # every block of queries reads all keys
    assert by_argument[1].cache_hit_ratio == 0.75


def test_many_programs_are_sampled(monkeypatch: pytest.MonkeyPatch):
    x, y = ts.empty((256, 256)), ts.empty((256, 256))
    exact = HostMemoryPatternTracer().trace_memory_patterns(HostExecution.of(transpose[8, 8], x, y))
    monkeypatch.setattr(host, "SAMPLED_PROGRAMS", 5)
    found = HostExecution.of(transpose[8, 8], x, y)
    assert found.scale == prod(found.grid) / 5
    sampled = HostMemoryPatternTracer().trace_memory_patterns(found)
    assert sampled.moved() == pytest.approx(exact.moved(), rel=0.02)


def test_registers_and_spills_are_those_of_the_emitted_code():
    x, y = ts.empty((64, 64)), ts.empty((64, 64))
    small = HostExecution.of(transpose[2, 2], x, y)
    assert isinstance(small.resources, HostResources)
    assert 0 < small.resources.vector_registers <= 32
    assert small.resources.spilled_bytes == 0
    (pressure,) = HostMemoryPatternTracer().trace_memory_patterns(small).register_pressure
    assert pressure.registers == small.resources.vector_registers


@pytest.mark.acceptance
def test_what_did_not_fit_into_registers_is_reported():
    heads = [ts.empty((1, 1, 64, 64)) for _ in range(4)]
    large = HostExecution.of(flash_attention.with_schedule(Schedule(block=(64, 64))), *heads, 0.125)
    memory = HostMemoryPatternTracer().trace_memory_patterns(large)
    body = instructions.functions_of(large.assembly)[large.instance.name]
    stored = instructions.memory_accesses(body).get("stack_vector_stores", 0)
    assert (large.resources.spilled_bytes > 0) == (stored > 0) == bool(memory.spills)
    assert all(one.access_type is AccessType.REGISTER_SPILL for one in memory.spills)


X86 = """
f:
\tmovq\t%rsp, %rbp
\tvmovups\t%ymm3, 32(%rsp)
\tvmovups\t%ymm4, 32(%rsp)
\tvmovaps\t%xmm1, -16(%rbp)
\tvmovups\t(%rsp), %ymm2
\tvmovups\t%zmm0, (%rdi)
\tmovq\t%rax, 8(%rsp)
\tvaddps\t64(%rsp), %ymm1, %ymm2
\tretq
"""
ARM = """
f:
\tstp\td15, d14, [sp, #-160]!
\tstr\tq0, [sp, #16]
\tstp\tq1, q2, [sp, #32]
\tldr\tq0, [sp, #16]
\tstr\tq5, [x0]
\tstr\tx30, [sp, #8]
\tret
"""


@pytest.mark.parametrize(("text", "expected"), [(X86, 32 + 16), (ARM, 16 + 32)])
def test_spilled_bytes_are_counted_once(text: str, expected: int):
    assert instructions.spilled_bytes(instructions.functions_of(text)["f"]) == expected


def test_without_machine_code_it_says_so():
    with knobs.interpret.using(True), pytest.raises(TesseraError, match="nothing is compiled for a processor"):
        HostExecution.of(transpose[2, 2], ts.empty((64, 64)), ts.empty((64, 64)))
