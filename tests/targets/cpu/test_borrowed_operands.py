"""Checks operands of products that are used where they lie: rows known to be there, side by side, and only read."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from cpu_runs import Array, at_cpu_level, at_tile_level
from hypothesis import given, settings
from hypothesis import strategies as st

from tessera import Schedule, kernel
from tessera.ir.tile import dialect as tile
from tessera.runtime.tensor.creation import asarray
from tessera.shapes.annotations import Out
from tessera.stdlib import flash_attention
from tessera.targets.cpu.compile import lower_kernel, options_for
from tessera.targets.cpu.ir import dialect as cpu
from tessera.targets.cpu.ir.types import BufferType
from tessera.tile.language import intrinsics as tile_ops
from tessera.transforms.core.facts import Facts, observe

bf16 = ml_dtypes.bfloat16
BOUNDS = {np.dtype(np.float32): 2e-6, np.dtype(bf16): 4e-3}
NAMES = ("q", "k", "v", "o")


def drawn(dtype: Any, *shape: int, apart: int = 1) -> Array:
    """Random numbers; rows may be farther apart than they are long."""
    memory = np.random.default_rng(sum(shape)).standard_normal((*shape[:-1], apart * shape[-1])).astype(dtype)
    return memory[..., : shape[-1]]


def lowered(arrays: list[Array], level: str, block: tuple[int, int], *, facts: bool = True) -> tuple[Any, Any, Facts]:
    """Attention at the tile level and at the cpu level, for these arrays, and what the latter rests on."""
    width = arrays[0].shape[-1]
    made = flash_attention.with_schedule(Schedule(block=(*block, width))).lower(*arrays, width**-0.5, causal=True)
    given_ = {f"arg{index}": asarray(array) for index, array in enumerate(arrays)}
    known = observe({**given_, "arg4": width**-0.5}) if facts else Facts()
    low, guards, *_ = lower_kernel(made.module, made.name, options_for(level), facts=known)
    return made, low, guards


def borrowed(module: Any) -> set[str]:
    """The arguments that products read in place."""
    found = [tile.base_of(op.view) for op in module.walk() if isinstance(op, cpu.BorrowOp)]
    return {base.name_hint or "" for base in found}


def check(arrays: list[Array], level: str, block: tuple[int, int]) -> set[str]:
    """That all levels give the same; gives what was borrowed."""
    made, low, _ = lowered(arrays, level, block)
    values = [*arrays, arrays[0].shape[-1] ** -0.5]
    expected = at_tile_level(made.module, made.name, values)
    for one, other in zip(at_cpu_level(low, made.name, values, 1), expected, strict=True):
        wide = other.astype(np.float64)
        assert np.linalg.norm(one.astype(np.float64) - wide) <= BOUNDS[one.dtype] * np.linalg.norm(wide)
    return borrowed(low)


def attended(dtype: Any, rows: int, keys: int, width: int, **apart: int) -> list[Array]:
    sizes = {"q": rows, "k": keys, "v": keys, "o": rows}
    return [drawn(dtype, 1, 2, sizes[name], width, apart=apart.get(name, 1)) for name in NAMES]


@pytest.mark.parametrize(
    ("level", "dtype", "width", "expected"),
    [
        ("avx512", np.float32, 64, {"q", "v"}),
        ("avx512", np.float32, 128, {"q"}),  # two panels to a row
        ("avx512", np.float32, 24, {"q"}),  # not whole vectors
        ("avx512", bf16, 64, set[str]()),  # summed in another type
        ("avx2", np.float32, 16, {"q", "v"}),
        ("neon", np.float32, 16, {"q", "v"}),
        ("amx", bf16, 64, {"q"}),  # the unit's right side is packed
        ("amx", bf16, 24, set[str]()),  # not whole lines
    ],
)
@pytest.mark.parametrize("keys", [32, 64])
def test_what_is_borrowed(level: str, dtype: Any, width: int, expected: set[str], keys: int) -> None:
    assert check(attended(dtype, 64, keys, width), level, (32, 32)) == expected


def test_strips_of_the_matrix_unit_have_their_rows() -> None:
    assert check(attended(bf16, 48, 32, 64), "amx", (24, 32)) == set()


def test_rows_that_are_apart_are_copied() -> None:
    for name, expected in (("q", {"v"}), ("v", {"q"}), ("o", {"q", "v"})):
        assert check(attended(np.float32, 64, 64, 64, **{name: 2}), "avx512", (32, 32)) == expected


def test_rows_that_may_not_be_there_are_copied() -> None:
    assert check(attended(np.float32, 60, 64, 64), "avx512", (32, 32)) == {"v"}
    assert check(attended(np.float32, 64, 60, 64), "avx512", (32, 32)) == {"q"}


def test_without_facts_nothing_is_borrowed() -> None:
    _, low, guards = lowered(attended(np.float32, 64, 64, 64), "avx512", (32, 32), facts=False)
    assert not borrowed(low)
    assert not guards


def test_what_is_borrowed_is_guarded() -> None:
    _, _, guards = lowered(attended(np.float32, 64, 64, 64), "avx512", (32, 32))
    known = set(map(str, guards))
    assert {"arg0.stride[2] = 64", "arg0.stride[3] = 1", "arg0.size[2] = 64", "arg2.stride[2] = 64"} <= known


@kernel
def product(x: Any, w: Any, o: Out):
    """o = x·w, where each column of the result is stored as soon as it is there."""
    here = tile_ops.context()
    rows, sums = tile_ops.load(x), tile_ops.zeros((here.m, here.d))
    for block in tile_ops.range_n(w.shape, here.n):
        sums = tile_ops.dot(rows, tile_ops.load(w, block), sums)
    filled: Any = o
    tile_ops.store(filled, sums)


@kernel
def square(x: Any, o: Out):
    """One load for both sides."""
    rows = tile_ops.load(x)
    filled: Any = o
    tile_ops.store(filled, tile_ops.dot(rows, rows))


@pytest.mark.parametrize("start", [0, 5, 128 * 7])
def test_machine_code_copies_what_is_overwritten(start: int) -> None:
    """The result is written over the left operand, or over a part of it."""
    x, w = drawn(np.float32, 32, 128), drawn(np.float32, 128, 128)
    made = product.with_schedule(Schedule(block=(32, 128, 128)))
    for one in (made, made.assume("sizes", "strides")):
        memory = np.zeros(x.size + start, np.float32)
        given_, found = memory[: x.size].reshape(x.shape), memory[start:].reshape(x.shape)
        given_[...] = x
        one(given_, w, found)
        assert np.abs(found - x @ w).max() <= 2e-6 * np.abs(x @ w).max() * 128


@pytest.mark.parametrize(("level", "dtype"), [("avx512", np.float32), ("amx", bf16)])
@pytest.mark.parametrize("size", [16, 24, 64, 128])
def test_one_load_for_both_sides(level: str, dtype: Any, size: int) -> None:
    x, o = drawn(dtype, size, size), np.zeros((size, size), np.float32)
    made = square.with_schedule(Schedule(block=(size, size, size))).lower(x, o)
    known = observe({"arg0": asarray(x), "arg1": asarray(o)})
    low, *_ = lower_kernel(made.module, made.name, options_for(level), facts=known)
    dots = [op for op in low.walk() if isinstance(op, cpu.DotOp | cpu.MatmulOp)]
    whole = size in (16, 64) and level == "avx512"  # as long as a panel
    assert {isinstance(op.b.type, BufferType) for op in dots} == {whole}
    expected = at_tile_level(made.module, made.name, [x, o])[-1]
    found = at_cpu_level(low, made.name, [x, o], 1)[-1]
    assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()


def test_machine_code_reads_nothing_behind_an_array() -> None:
    """An array that ends where a page does, with a page behind it that must not be read."""
    page, size = mmap.PAGESIZE, 24
    pages = mmap.mmap(-1, 2 * page)
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    start = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    assert protect(start + page, page, 0) == 0
    try:
        x = np.frombuffer(pages, np.float32, size * size, page - 4 * size * size).reshape(size, size)
        x[...], o = 2 * np.eye(size), np.zeros((size, size), np.float32)
        square.with_schedule(Schedule(block=(size, size, size))).assume("sizes", "strides")(x, o)
        assert np.array_equal(o, 4 * np.eye(size))
    finally:
        assert protect(start + page, page, mmap.PROT_READ | mmap.PROT_WRITE) == 0


@pytest.mark.acceptance
@settings(max_examples=6)
@given(st.integers(0, 15), st.booleans(), st.sampled_from([64, 70]), st.booleans())
def test_machine_code_takes_rows_from_anywhere(start: int, causal: bool, keys: int, in_place: bool) -> None:
    """Memory that begins in the middle of a cache line, and a result that is written over an operand."""

    def moved(array: Array) -> Array:
        memory = np.zeros(array.size + 16, np.float32)
        memory[start : start + array.size] = array.ravel()
        return memory[start : start + array.size].reshape(array.shape)

    attention = flash_attention.with_schedule(Schedule(block=(64, 64, 64)))
    q, k, v, o = map(moved, attended(np.float32, 64, keys, 64))
    attention(q, k, v, o, 0.125, causal=causal)
    found = q if in_place else np.zeros_like(o)
    attention.assume("sizes", "strides", "values")(q, k, v, found, 0.125, causal=causal)
    assert np.abs(found - o).max() <= 2e-6 * np.abs(o).max()
