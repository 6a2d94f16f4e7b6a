"""Memory of a GPU: tensors there and back, strided copies, the pool, its end, and streams that share memory."""

from __future__ import annotations

import gc
import pickle
import threading
from typing import Any

import numpy as np
import pytest
from cuda_kernels import DELAYED, ptx
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tessera as ts
from tessera.dtypes.types import ALL
from tessera.errors import DeviceError, ResourceError
from tessera.runtime.cuda import Event, Stream, current_stream, default_stream, synchronize
from tessera.runtime.cuda.backend import CudaBackend
from tessera.runtime.cuda.executable import CudaExecutable
from tessera.runtime.cuda.staging import PIECE
from tessera.runtime.tensor import dlpack

pytestmark = pytest.mark.gpu

MILLISECONDS = 1_000_000


def backend() -> CudaBackend:
    found = ts.device("cuda:0").backend
    assert isinstance(found, CudaBackend)
    return found


def test_a_gpu_is_found_and_says_what_it_is() -> None:
    found = backend().context.properties
    assert backend().name == found.name
    assert found.capability >= (8, 0)
    assert found.multiprocessors > 0
    assert found.memory > 1 << 30
    assert found.shared_per_block >= 48 << 10
    assert found.warp == 32
    assert found.threads_per_block == 1024
    assert found.pci_bus.count(":") == 2
    with pytest.raises(DeviceError, match="there is no device cuda:99: this process sees"):
        ts.ones(1).cuda(99)


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_tensors_go_there_and_come_back(dtype: ts.DType) -> None:
    x = ts.asarray([[1, 0, 1], [0, 1, 1]]).to(dtype)
    there = x.cuda()
    assert (there.device, there.shape, there.strides, there.dtype) == (ts.device("cuda:0"), x.shape, x.strides, dtype)
    assert there.pointer % 256 == 0
    assert there.cpu().numpy().tobytes() == x.numpy().tobytes()
    assert there.to("cuda:0") is there
    assert there.copy().cpu().numpy().tobytes() == x.numpy().tobytes()
    assert there.tolist() == x.tolist()


@pytest.mark.parametrize("count", [0, 1, PIECE - 1, PIECE, 3 * PIECE + 5, 9 * PIECE])
def test_copies_of_all_sizes(count: int) -> None:
    x = np.random.default_rng(1).integers(0, 256, count, dtype=np.uint8)
    expected = x.copy()
    there = ts.asarray(x).cuda()
    x[...] = 0  # the source may change as soon as the copy has returned
    np.testing.assert_array_equal(there.cpu().numpy(), expected)


@settings(max_examples=60)
@given(st.data(), hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=9))
def test_views_are_copied_there_as_here(data: st.DataObject, shape: tuple[int, ...]) -> None:
    dtype = data.draw(st.sampled_from((ts.u8, ts.bf16, ts.f32, ts.i64)))
    near = ts.arange(int(np.prod(shape))).reshape(shape).to(dtype)
    far = near.cuda()
    order = data.draw(st.permutations(range(len(shape))))
    key = data.draw(hnp.basic_indices(tuple(shape[axis] for axis in order), allow_newaxis=True))
    near_view, far_view = near.permute(*order)[key], far.permute(*order)[key]
    assert far_view.strides == near_view.strides
    assert far_view.copy().tolist() == far_view.cpu().tolist() == near_view.tolist()
    assert far.broadcast_to(2, *shape).copy().tolist() == [near.tolist()] * 2


def test_a_large_transpose() -> None:
    x = np.random.default_rng(2).standard_normal((1500, 2100), dtype=np.float32)
    np.testing.assert_array_equal(ts.asarray(x).cuda().T.copy().cpu().numpy(), x.T)


def test_tensors_there_print_and_travel() -> None:
    x = ts.arange(6, device="cuda").reshape(2, 3)
    assert repr(x) == "Tensor([[0, 1, 2],\n        [3, 4, 5]],\n       shape=(2, 3), dtype=i64, device=cuda:0)"
    again = pickle.loads(pickle.dumps(x))
    assert (again.device, again.tolist()) == (x.device, x.tolist())
    with ts.device("cuda:0"):
        assert ts.zeros((2, 2)).device is x.device
    with pytest.raises(DeviceError, match="cannot be read by the host"):
        x.numpy()


def test_memory_serves_again_on_its_stream_and_is_counted() -> None:
    size, slack = 64 << 20, 4 << 20
    gc.collect()
    pool = backend().pool
    pool.trim()
    before = pool.statistics()
    assert before.kept == 0

    def counted() -> tuple[bool, int]:
        found = pool.statistics()
        assert found.reserved >= found.used
        return found.used - before.used > size - slack, found.kept

    x = ts.empty((size,), ts.u8, device="cuda")
    pointer = x.pointer
    assert counted() == (True, 0)
    del x
    assert counted() == (False, size)
    assert ts.empty((size,), ts.u8, device="cuda").pointer == pointer
    with Stream():
        assert ts.empty((size,), ts.u8, device="cuda").pointer != pointer
    pool.trim()
    assert counted() == (False, 0)
    assert pool.statistics().peak > before.used + size - slack
    pool.reset_peak()
    assert pool.statistics().peak < before.used + size - slack


@pytest.mark.alone
def test_memory_that_runs_out_leaves_everything_usable() -> None:
    gc.collect()
    pool, total = backend().pool, backend().context.properties.memory
    pool.trim()
    x = ts.arange(1000, device="cuda")
    with pytest.raises(ResourceError, match=r"bytes of memory on cuda:0 cannot be had: tensors hold [\d,]+ ") as caught:
        ts.empty((2 * total,), ts.u8, device="cuda")
    assert "nvidia-smi" in str(caught.value.hint)
    held: list[ts.Tensor] = []

    def take_all() -> None:
        while len(held) < 40:
            held.append(ts.empty((total // 16,), ts.u8, device="cuda"))

    with pytest.raises(ResourceError, match="cannot be had"):
        take_all()
    assert len(held) >= 8
    assert x.cpu().tolist() == list(range(1000))
    # What was given up is kept for that size, and handed back when another needs it.
    held.clear()
    free, _ = backend().context.free_memory()
    half = ts.empty((total // 2,), ts.u8, device="cuda")
    assert half.nbytes > free or free > total // 2
    del half
    pool.trim()
    assert (x.copy().cpu().numpy() == np.arange(1000)).all()


def test_streams_and_events_order_work() -> None:
    stream, other = Stream(), Stream()
    assert current_stream() is default_stream()
    x = ts.asarray(np.full(1000, 3.0, np.float32), device="cuda")
    other.wait_for(default_stream())
    stream.wait_for(default_stream())
    program = CudaExecutable(DELAYED, ptx())
    run = program.bind([x.geometry, 0])
    run(x.geometry, 0)
    synchronize()
    begin, end = Event(timing=True), Event(timing=True)
    with stream:
        assert current_stream() is stream
        begin.record()
        y = run(x.geometry, 20 * MILLISECONDS)
        end.record()
        with other:
            assert current_stream() is other
        assert current_stream() is stream
        late = stream.record()
    assert not stream.is_done()
    assert not late.is_done()
    assert other.is_done()
    other.wait(late)
    assert not other.is_done() or late.is_done()
    late.synchronize()
    assert stream.is_done()
    other.synchronize()
    assert 15 < begin.milliseconds_until(end) < 200
    assert y.tolist() == [3.0] * 1000
    assert current_stream() is default_stream()


def test_memory_used_on_two_streams_waits_for_both() -> None:
    """One stream reads memory late; its own stream has long let go of it, and would fill it with something else."""
    program, home = CudaExecutable(DELAYED, ptx()), Stream()
    for _ in range(5):
        with home:
            x = ts.asarray(np.full(4096, 1.0, np.float32), device="cuda")
        reader = Stream()
        reader.wait_for(home)
        with reader:
            y = program.bind([x.geometry, 0])(x.geometry, 30 * MILLISECONDS)
        pointer = x.pointer
        del x
        with home:
            again = ts.asarray(np.full(4096, 2.0, np.float32), device="cuda")
            assert again.pointer == pointer, "the test needs the same memory"
        reader.synchronize()
        assert set(y.tolist()) == {1.0}
        home.synchronize()
        assert set(again.tolist()) == {2.0}


def test_memory_outlives_its_stream() -> None:
    stream = Stream()
    with stream:
        x = ts.asarray(np.arange(100.0), device="cuda")
        y = x.copy()
    stream.synchronize()
    del stream
    gc.collect()
    assert y.cpu().tolist() == x.cpu().tolist() == list(range(100))
    del x, y
    gc.collect()
    assert ts.arange(3, device="cuda").tolist() == [0, 1, 2]


def test_threads_use_the_gpu_without_asking() -> None:
    x = np.random.default_rng(3).standard_normal(10_000).astype(np.float32)
    wrong: list[Any] = []

    def work() -> None:
        try:
            for _ in range(50):
                np.testing.assert_array_equal(ts.asarray(x).cuda().copy().cpu().numpy(), x)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


class Described:
    """A library's array that has the CUDA array interface and nothing else."""

    def __init__(self, tensor: ts.Tensor, **changes: Any) -> None:
        self.tensor = tensor
        self.__cuda_array_interface__ = {**tensor.__cuda_array_interface__, **changes}


def test_the_cuda_array_interface() -> None:
    x = ts.arange(12, device="cuda").reshape(3, 4)
    found = x.T.__cuda_array_interface__
    assert (found["version"], found["shape"], found["typestr"]) == (3, (4, 3), "<i8")
    assert (found["strides"], found["data"], found["stream"]) == ((8, 32), (x.pointer, False), 1)
    assert x.__cuda_array_interface__["strides"] is None
    taken = ts.asarray(Described(x.T))
    assert (taken.pointer, taken.device, taken.strides) == (x.pointer, x.device, (1, 4))
    assert taken.tolist() == x.T.tolist()
    assert not ts.asarray(Described(x, data=(x.pointer, True))).writable
    stream = Stream()
    with stream:
        assert x.__cuda_array_interface__["stream"] == stream.handle
    assert ts.asarray(Described(x, stream=stream.handle)).tolist() == x.tolist()
    assert not hasattr(x.cpu(), "__cuda_array_interface__")
    assert not hasattr(ts.zeros(2, ts.bf16, device="cuda"), "__cuda_array_interface__")
    owner = Described(x)
    taken = ts.asarray(owner)
    del x, owner
    gc.collect()
    assert taken[2, 3].item() == 11


def test_dlpack_with_ourselves() -> None:
    x = ts.ones((3, 4), ts.bf16, device="cuda")
    y = ts.from_dlpack(x.T)
    assert (y.pointer, y.strides, y.device) == (x.pointer, (1, 4), x.device)
    assert x.__dlpack_device__() == (2, 0)
    stream = Stream()
    for consumer in (None, 1, 2, -1, stream.handle):
        x.__dlpack__(stream=consumer, max_version=(1, 1))
    for wrong in (0, -2):
        with pytest.raises(DeviceError, match="expected a stream in DLPack's numbering"):
            x.__dlpack__(stream=wrong)
    host = x.__dlpack__(dl_device=(1, 0), max_version=(1, 1))
    assert dlpack.take(host).array.tolist() == [[1.0] * 4] * 3
