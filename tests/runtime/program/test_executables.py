"""Executables: plans as text, what binding refuses, scratch memory, failures, and the memory of results."""

from __future__ import annotations

import gc
import json
import sys
import weakref
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tessera as ts
from tessera import bf16, f32
from tessera.compiler.launch_plan import ArrayArgument, Failure, NumberArgument, Plan
from tessera.dtypes.types import ALL
from tessera.errors import CompileError, DtypeError, EffectError, ShapeError, SourceSpan
from tessera.runtime.cache import store as compile_cache
from tessera.runtime.cache.store import Store
from tessera.runtime.native import fresh_arrays, pool
from tessera.runtime.program import executable
from tessera.runtime.program.executable import Executable
from tessera.shapes.expr import dim
from tessera.targets.cpu import features
from tessera.targets.llvm import image, machine

# out[i] = value for all i below the size of x; a negative value is a failure. `scratch` bytes are wanted, and written.
TEXT = """
define i64 @fill(ptr %args, i64 %thread, i64 %threads, ptr %workspace) nounwind {
entry:
  %calls = atomicrmw add ptr %args, i64 1 monotonic
  %first = icmp eq i64 %calls, 0
  br i1 %first, label %look, label %end
look:
  %count_at = getelementptr i64, ptr %args, i64 9
  %count = load i64, ptr %count_at
  %value_at = getelementptr i64, ptr %args, i64 11
  %value = load float, ptr %value_at
  %scratch_at = getelementptr i64, ptr %args, i64 12
  %scratch = load i64, ptr %scratch_at
  %out_at = getelementptr i64, ptr %args, i64 13
  %out = load ptr, ptr %out_at
  %stride_at = getelementptr i64, ptr %args, i64 15
  %stride = load i64, ptr %stride_at
  %bad = fcmp olt float %value, 0.0
  br i1 %bad, label %fail, label %use
fail:
  %status_at = getelementptr i64, ptr %args, i64 1
  store i64 2, ptr %status_at
  br label %end
use:
  %none = icmp sle i64 %scratch, 0
  br i1 %none, label %next, label %touch
touch:
  %last = sub i64 %scratch, 1
  %last_at = getelementptr i8, ptr %workspace, i64 %last
  store i8 1, ptr %last_at
  br label %next
next:
  %i = phi i64 [ 0, %use ], [ 0, %touch ], [ %following, %store ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %store, label %end
store:
  %distance = mul i64 %i, %stride
  %at = getelementptr float, ptr %out, i64 %distance
  store float %value, ptr %at
  %following = add i64 %i, 1
  br label %next
end:
  ret i64 0
}

define i64 @fill.workspace(ptr %args) nounwind {
  %scratch_at = getelementptr i64, ptr %args, i64 12
  %scratch = load i64, ptr %scratch_at
  %some = icmp sgt i64 %scratch, 0
  %wanted = select i1 %some, i64 %scratch, i64 0
  ret i64 %wanted
}
"""
N = dim("n")
X, VALUE, SCRATCH = ArrayArgument(0, f32, (N,), False), NumberArgument(3, "f32"), NumberArgument(4, "i64")
FAILURES = (Failure("never", None), Failure("it is negative", SourceSpan(__file__, 1, 0, 1, 3)))
RETURNING = Plan("fill", (X, VALUE, SCRATCH, ArrayArgument(5, f32, (N,), True)), 1, (1,), 8, 9, FAILURES)
FILLING = Plan("fill", (X, VALUE, SCRATCH, ArrayArgument(5, f32, (N,), True)), 0, (1,), 8, 9, FAILURES)


@cache
def code() -> bytes:
    processor, extras = features.target(features.level())
    return image.flatten(machine.compile_text(TEXT, cpu=processor, features=extras))


def test_results_are_made_by_the_call() -> None:
    x = np.zeros(5, np.float32)
    run = Executable(RETURNING, code()).bind([x, 1.0, 0])
    first, second = run(x, 1.0, 0), run(x, 2.0, 0)
    assert (first.tolist(), second.tolist()) == ([1.0] * 5, [2.0] * 5)
    assert first.meta is second.meta is ts.ones(5).meta
    assert first.pointer % 64 == 0
    assert (first.buffer.pointer, first.buffer.nbytes) == (first.pointer, 20)
    with ts.track_shapes():
        assert ts.shape_history(run(x, 1.0, 0)) != ts.shape_history(first)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (7,), (5, 3, 2)])
@pytest.mark.parametrize("dtype", [f32, bf16, ts.i8])
def test_fresh_arrays_own_their_memory(shape: tuple[int, ...], dtype: ts.DType) -> None:
    executable.start_pool()
    make = fresh_arrays.maker(shape, dtype.storage)
    assert make is not None
    arrays = [make() for _ in range(20)]
    for number, array in enumerate(arrays):
        assert (array.shape, array.dtype, array.flags.c_contiguous) == (shape, dtype.storage, True)
        assert array.ctypes.data % 64 == 0
        array[...] = number
    assert all((array == number).all() for number, array in enumerate(arrays))
    last = make()
    memory = last.base
    assert isinstance(memory, bytearray)
    del last
    assert sys.getrefcount(memory) == 2


def test_arrays_are_filled_in_place_whatever_their_strides() -> None:
    x, memory = np.zeros(3, np.float32), np.zeros(8, np.float32)
    out = memory[6::-2][:3]
    assert Executable(FILLING, code()).bind([x, 1.0, 0, out])(x, 4.0, 0, out) is None
    assert memory.tolist() == [0, 0, 4, 0, 4, 0, 4, 0]


def test_scratch_memory_follows_the_numbers() -> None:
    x = np.zeros(3, np.float32)
    run = Executable(RETURNING, code()).bind([x, 1.0, 0])
    for scratch in (0, 64, 1 << 20, 100, 1 << 23):
        assert run(x, 1.0, scratch).tolist() == [1.0] * 3
    with pytest.raises(DtypeError, match="argument 2 of @fill: expected a number of i64"):
        run(x, 1.0, 1 << 63)


def test_failures_are_errors_at_their_source() -> None:
    x = np.zeros(3, np.float32)
    with pytest.raises(CompileError, match="it is negative") as caught:
        Executable(RETURNING, code()).bind([x, 1.0, 0])(x, -1.0, 0)
    assert caught.value.span == FAILURES[1].span


def test_binding_refuses_what_the_program_cannot_take() -> None:
    program = Executable(FILLING, code())
    x, fixed = np.zeros(3, np.float32), np.zeros(3, np.float32)
    fixed.flags.writeable = False
    with pytest.raises(EffectError, match="argument 3 of @fill is written, and the array given is read-only"):
        program.bind([x, 1.0, 0, fixed])
    with pytest.raises(DtypeError, match="argument 0 of @fill: expected an array of f32, got float64"):
        program.bind([np.zeros(3), 1.0, 0, x])
    with pytest.raises(DtypeError, match="argument 0 of @fill: expected an array of f32, got a number"):
        program.bind([1.0, 1.0, 0, x])
    with pytest.raises(ShapeError, match="argument 3 of @fill: expected rank 1, got 2"):
        program.bind([x, 1.0, 0, np.zeros((3, 1), np.float32)])
    with pytest.raises(ShapeError, match="argument 3 of @fill, axis 0: expected n = 3, got 4"):
        program.bind([x, 1.0, 0, np.zeros(4, np.float32)])
    packed = np.zeros(3, np.dtype([("tag", np.uint8), ("value", np.float32)]))["value"]
    with pytest.raises(ShapeError, match=r"strides of \(5,\) bytes are not whole elements"):
        program.bind([packed, 1.0, 0, x])
    assert program.bind([fixed, 1.0, 0, x])(fixed, 2.0, 0, x) is None
    # What was writable when it was bound may not be later.
    run = program.bind([x, 1.0, 0, x])
    with pytest.raises(EffectError, match="argument 3"):
        run(x, 1.0, 0, fixed)
    assert fixed.tolist() == [0.0] * 3


def test_machine_code_lives_as_long_as_it_may_be_called() -> None:
    x = np.zeros(3, np.float32)
    program = Executable(RETURNING, code())
    run, loaded = program.bind([x, 1.0, 0]), weakref.ref(program.image)
    del program
    gc.collect()
    assert run(x, 5.0, 0).tolist() == [5.0] * 3
    assert loaded() is not None
    del run
    gc.collect()
    assert loaded() is None


def test_sizes_are_solved_and_evaluated() -> None:
    arguments = (ArrayArgument(0, f32, (dim("2*n"), dim("m")), False), ArrayArgument(5, bf16, (dim("n"),), True))
    plan = Plan("p", arguments, 1, (dim("(n + 63)//64"), dim("m*n")), 8, 10, ())
    sizes = plan.sizes([(14, 3)])
    assert sizes == {"n": 7, "m": 3}
    assert plan.result_shapes(sizes) == [(7,)]
    assert plan.extents(sizes) == (1, 21)
    with pytest.raises(ShapeError):
        plan.sizes([(13, 3)])
    unknown = Plan("p", (X, ArrayArgument(3, f32, (dim("k"),), True)), 1, (1,), 6, 7, ())
    with pytest.raises(ShapeError, match="the size k of a result is not known from the arguments"):
        unknown.result_shapes(unknown.sizes([(3,)]))


SIZES = st.one_of(
    st.integers(0, 1000), st.sampled_from(["n", "m", "2*n + 1", "n*m", "(n + 63)//64", "n - m", "n%8"]).map(dim)
)
SHAPES = st.lists(SIZES, max_size=4).map(tuple)
SPANS = st.none() | st.builds(SourceSpan, st.text(), st.integers(1, 99), st.integers(0, 99), st.none(), st.none())
ARGUMENTS = st.one_of(
    st.builds(ArrayArgument, st.integers(0, 99), st.sampled_from(ALL), SHAPES, st.booleans()),
    st.builds(NumberArgument, st.integers(0, 99), st.sampled_from(["i64", "f32", "f64", "i1"])),
)
PLANS = st.builds(
    Plan,
    st.text(),
    st.lists(ARGUMENTS, max_size=4).map(tuple),
    st.just(0),
    SHAPES,
    st.integers(0, 99),
    st.integers(0, 99),
    st.lists(st.builds(Failure, st.text(), SPANS), max_size=3).map(tuple),
    st.booleans(),
)


@given(PLANS)
def test_plans_are_read_back_as_they_were_written(plan: Plan) -> None:
    assert Plan.decoded(json.loads(json.dumps(plan.encoded()))) == plan


@given(
    st.recursive(
        st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_what_is_no_plan_is_no_plan(found: Any) -> None:
    with pytest.raises((KeyError, TypeError, ValueError, IndexError)):
        Plan.decoded(found)


def test_the_threads_of_kernels_are_kept_by_the_cache_too(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path, 10_000_000)
    made: list[bytes] = []

    def compile_runtime() -> bytes:
        made.append(b"")
        return real()

    real = pool.compile_runtime
    monkeypatch.setattr(compile_cache, "shared", lambda: store)
    monkeypatch.setattr(executable, "build", lambda: "this compiler")
    monkeypatch.setattr(pool, "is_running", lambda: False)
    monkeypatch.setattr(pool, "compile_runtime", compile_runtime)
    for _ in range(3):
        executable.start_pool()
    assert len(made) == len(store.entries()) == 1
