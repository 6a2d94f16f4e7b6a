"""Metas: one object per distinct description, also among threads, and none kept beyond its use."""

from __future__ import annotations

import gc
import pickle
import threading

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tessera as ts
from tessera.runtime.device.device import CPU
from tessera.runtime.tensor.meta import Meta, alignment_of, may_overlap


def test_equal_descriptions_are_one_object() -> None:
    a, b = ts.zeros((2, 3)), ts.ones((2, 3))
    assert a.meta is b.meta is a.copy().meta is (a + b).meta
    assert a.meta is Meta(ts.f32, (2, 3), (3, 1), CPU, 64)
    assert pickle.loads(pickle.dumps(a.meta)) is a.meta
    others = (a.T, a[:, :2], a[1:], a.to(ts.f16), a.to(ts.f32 @ ts.accum(ts.f64)), a[None])
    assert len({id(other.meta) for other in (a, *others)}) == 7


def test_a_meta_says_what_its_tensor_is() -> None:
    x = ts.zeros((4, 6), ts.bf16)[1:, ::2]
    meta = x.meta
    assert (meta.dtype, meta.shape, meta.strides, meta.device) == (ts.bf16, (3, 3), (6, 2), CPU)
    assert (meta.ndim, meta.size, meta.nbytes, meta.alignment) == (2, 9, 18, 4)
    assert repr(meta) == "Meta(bf16, shape=(3, 3), strides=(6, 2), device=cpu, alignment=4)"


@given(st.integers(0, 1 << 48))
def test_alignment_is_the_largest_power_of_two_up_to_64(pointer: int) -> None:
    alignment = alignment_of(pointer)
    assert alignment in (1, 2, 4, 8, 16, 32, 64)
    assert pointer % alignment == 0
    assert alignment == 64 or pointer % (2 * alignment)


@given(st.data(), hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=3))
def test_contiguity_and_overlap(data: st.DataObject, shape: tuple[int, ...]) -> None:
    x = ts.zeros(shape, ts.i16).permute(*data.draw(st.permutations(range(len(shape)))))
    x = x[data.draw(hnp.basic_indices(x.shape))]
    assert x.meta.is_contiguous == x.numpy().flags.c_contiguous
    assert not may_overlap(x.shape, x.strides)


def live_metas() -> int:
    gc.collect()
    return sum(type(thing) is Meta for thing in gc.get_objects())


def test_metas_do_not_pile_up() -> None:
    before = live_metas()
    for size in range(1000):
        _ = ts.zeros((size, 7), ts.u8).meta
    assert live_metas() <= before + 1


def test_a_meta_in_use_is_never_replaced() -> None:
    held = ts.zeros((3, 3)).meta
    for _ in range(100):
        gc.collect(0)
        assert ts.zeros((3, 3)).meta is held


def test_threads_agree() -> None:
    """Many threads ask for the same fresh descriptions at once; each description gets one object."""
    for round_ in range(20):
        start = threading.Barrier(8)
        found: list[list[Meta]] = []

        def ask(start: threading.Barrier = start, found: list[list[Meta]] = found, size: int = round_) -> None:
            start.wait()
            found.append([Meta(ts.f32, (size, column), (column, 1), CPU, 64) for column in range(100)])

        workers = [threading.Thread(target=ask) for _ in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert len(found) == 8
        for metas in zip(*found, strict=True):
            assert len({id(meta) for meta in metas}) == 1


def test_foreign_memory_tells_its_alignment() -> None:
    raw = np.zeros(256, np.uint8)
    start = -raw.ctypes.data % 64
    for shift, expected in ((0, 64), (4, 4), (8, 8), (16, 16), (32, 32), (48, 16)):
        x = ts.asarray(raw[start + shift : start + shift + 16].view(np.float32))
        assert x.meta.alignment == expected
    assert ts.zeros((0, 3)).meta.alignment == 64
