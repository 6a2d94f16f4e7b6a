"""Source spans survive: ops of the last level say for which line they are, and those of helpers who called them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from gpu_options import gpu
from test_cuda_kernel_texts import CASES, Arrays, Call
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

import tessera as ts
from tessera import Schedule, bf16, f32, kernel, stdlib, tile
from tessera.errors import CompileError, SourceSpan
from tessera.ir.common.locations import location_of, span_of
from tessera.targets import text
from tessera.targets.cpu.compile import lower_kernel as lower_for_cpu
from tessera.targets.cpu.compile import options_for
from tessera.targets.cuda.compile import lower_kernel as lower_for_cuda
from tessera.tile.calls.program_cache import lines_of

LEAST = 0.98
TARGETS = ["sm_90a", "sm_80", "avx512"]
QUICK = ["gemm", "causal_attention", "layernorm", "rope"]


def last_level(call: Call, target: str) -> ModuleOp:
    """The module of a kernel that the emitter reads."""
    function, given, static = call
    made = function.lower(*given, **static)
    if target == "avx512":
        return lower_for_cpu(made.module, made.name, options_for(target)).module
    results = range(len(made.paths), len(made.paths) + len(made.outputs))
    row_aligned = [*(place for place, lies in lines_of(given).items() if lies), *results]
    return lower_for_cuda(made.module, made.name, gpu(target, row_aligned=row_aligned)).module


def ops_of(module: ModuleOp) -> list[Operation]:
    return [op for op in module.walk() if op is not module]


def spans_in(module: ModuleOp) -> list[SourceSpan]:
    return [span for op in ops_of(module) if (span := span_of(op.location)) is not None]


def check(call: Call, target: str) -> None:
    module = last_level(call, target)
    ops, spans = ops_of(module), spans_in(module)
    assert len(spans) >= LEAST * len(ops)
    # Not all of them at the kernel's first line, which ops have that are for no line.
    (function,) = module.body.block.ops
    lines = {span.line for span in spans}
    assert len(lines) > 1
    assert sum(span == span_of(function.location) for span in spans) < 0.5 * len(spans)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", QUICK)
def test_ops_keep_their_spans(name: str, target: str) -> None:
    check(CASES[name](Arrays(bf16)), target)


@pytest.mark.acceptance
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", [name for name in CASES if name not in QUICK])
def test_ops_of_the_library_keep_their_spans(name: str, target: str) -> None:
    check(CASES[name](Arrays(f32 if name == "histogram" else bf16)), target)


@pytest.mark.parametrize("target", TARGETS)
def test_attention_of_two_consumers_keeps_its_spans(target: str) -> None:
    given: list[Any] = [Arrays(bf16)(2, 8, 1024, 128) for _ in range(3)]
    check((stdlib.attention.with_schedule(Schedule(block=(128, 128))), given, {"mask": stdlib.causal}), target)


# Helpers


def scaled(value: Any, factor: float) -> Any:
    return tile.exp(value) * factor


def summed(value: Any) -> Any:
    total = value
    for _ in tile.range(3):
        total = total + scaled(value, 2.0)
    return total


def misused(value: Any) -> Any:
    return value.shape_of_nothing


@kernel.schedule(Schedule(block=(16,)))
def through_helpers(x: Any) -> Any:
    value = tile.load(x)
    if tile.program_id(0) > 1:
        value = summed(value)
    return value


def line_of(words: str) -> int:
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return 1 + next(number for number, line in enumerate(lines) if words in line)


def chain(span: SourceSpan) -> list[int]:
    return [span.line, *([] if span.caller is None else chain(span.caller))]


CALLS = [
    line_of("return tile.exp(value) * factor"),
    line_of("total = total + scaled(value, 2.0)"),
    line_of("value = summed(value)"),
]


@pytest.mark.parametrize("target", TARGETS)
def test_helpers_keep_their_callers(target: str) -> None:
    module = last_level((through_helpers, [ts.empty((64, 32), f32)], {}), target)
    chains = [chain(span) for span in spans_in(module)]
    assert CALLS in chains
    # The loop and the branch around a call are no calls.
    assert all(found in (CALLS, CALLS[1:], [found[0], CALLS[2]], found[:1]) for found in chains)
    written = text.write(module, locations=True)
    assert CALLS in [chain(span) for span in spans_in(text.read(written, "written"))]


def test_an_error_names_the_helper_and_its_callers() -> None:
    @kernel.schedule(Schedule(block=(16,)))
    def refused(x: Any) -> Any:
        return misused(tile.load(x))

    with pytest.raises(CompileError) as caught:
        refused.lower(ts.empty((64, 32), f32))
    calls = [line_of("return value.shape_of_nothing"), line_of("return misused(tile.load(x))")]
    assert caught.value.span is not None
    assert chain(caught.value.span) == calls
    assert f"called at {__file__}:{calls[1]}:" in str(caught.value)


def test_locations_carry_callers() -> None:
    span = SourceSpan("helper.py", 3, 4, 3, 9, SourceSpan("kernel.py", 7, 1, 7, 8, SourceSpan("kernel.py", 20)))
    assert span_of(location_of(span)) == span
