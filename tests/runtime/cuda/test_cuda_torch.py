"""torch and tensors on one GPU, in one process: one memory, one order of work."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from cuda_kernels import DELAYED, SCALE, ptx

import tessera as ts
from tessera.runtime.cuda import Event, Graph, Stream, synchronize
from tessera.runtime.cuda.executable import CudaExecutable
from tessera.runtime.device.threads import before_work

pytestmark = pytest.mark.gpu

torch: Any = pytest.importorskip("torch")

NAMES = {
    ts.f64: "float64",
    ts.f32: "float32",
    ts.f16: "float16",
    ts.bf16: "bfloat16",
    ts.f8e4m3: "float8_e4m3fn",
    ts.f8e5m2: "float8_e5m2",
    ts.i64: "int64",
    ts.i32: "int32",
    ts.i16: "int16",
    ts.i8: "int8",
    ts.u8: "uint8",
    ts.bool_: "bool",
}
MILLISECONDS = 1_000_000


@pytest.mark.parametrize("dtype", NAMES, ids=str)
def test_memory_is_shared_both_ways(dtype: ts.DType) -> None:
    x = ts.asarray([[1, 0, 1], [0, 1, 1]]).to(dtype).cuda()
    theirs = torch.from_dlpack(x)
    assert theirs.dtype is getattr(torch, NAMES[dtype])
    assert (theirs.data_ptr(), theirs.device.type) == (x.pointer, "cuda")
    assert theirs.cpu().to(torch.float64).tolist() == x.to("cpu").to(ts.f64).tolist()
    theirs.zero_()
    assert x.to("cpu").to(ts.f64).tolist() == [[0.0] * 3] * 2
    back = ts.asarray(torch.ones((4, 2), device="cuda").to(theirs.dtype).T)
    assert (back.dtype, back.shape, back.strides) == (dtype, (2, 4), (1, 2))
    assert back.cpu().to(ts.f64).tolist() == [[1.0] * 4] * 2


def test_the_default_streams_are_one() -> None:
    """Neither side waits for the host: what comes later sees what came before."""
    run = CudaExecutable(DELAYED, ptx())
    for value in range(5):
        theirs = torch.full((100_000,), float(value), device="cuda")
        ours = ts.from_dlpack(theirs)
        late = run.bind([ours.geometry, 0])(ours.geometry, 5 * MILLISECONDS)
        doubled = torch.from_dlpack(late) * 2
        again = ts.from_dlpack(doubled)
        assert set(again.tolist()) == {2.0 * value}
        assert set(doubled.tolist()) == {2.0 * value}


def test_streams_of_torch_are_ours_where_asked() -> None:
    side = torch.cuda.Stream()
    stream = Stream.wrap(side.cuda_stream)
    assert stream.handle == side.cuda_stream
    run = CudaExecutable(DELAYED, ptx())
    with torch.cuda.stream(side), stream:
        theirs = torch.arange(10_000, device="cuda", dtype=torch.float32)
        ours = ts.from_dlpack(theirs)
        late = run.bind([ours.geometry, 0])(ours.geometry, 10 * MILLISECONDS)
        result = torch.from_dlpack(late) + 1
    side.synchronize()
    assert result.tolist() == list(range(1, 10_001))
    assert Stream.wrap(torch.cuda.default_stream().cuda_stream).handle == 1


def test_streams_are_ordered_at_the_exchange() -> None:
    """A tensor made late on one of our streams is handed to torch's default stream, and the other way round."""
    run, stream = CudaExecutable(DELAYED, ptx()), Stream()
    x = ts.asarray(np.full(50_000, 7.0, np.float32), device="cuda")
    stream.wait_for(Stream.wrap(0))
    with stream:
        late = run.bind([x.geometry, 0])(x.geometry, 30 * MILLISECONDS)
        theirs = torch.from_dlpack(late)
    assert set((theirs + 1).tolist()) == {8.0}
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.default_stream())
    with torch.cuda.stream(side):
        torch.cuda._sleep(50_000_000)
        other = torch.full((50_000,), 9.0, device="cuda")
        ours = ts.from_dlpack(other)
    copied = ours.copy()
    assert set(copied.tolist()) == {9.0}


def test_memory_lent_to_torch_is_not_used_before_torch_is_done() -> None:
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(5):
            x = ts.asarray(np.full(1 << 16, 1.0, np.float32), device="cuda")
            theirs = torch.from_dlpack(x)
            torch.cuda._sleep(30_000_000)
            result = theirs * 1
            pointer = x.pointer
            del x, theirs
            gc.collect()
            again = ts.asarray(np.full(1 << 16, 2.0, np.float32), device="cuda")
            assert again.pointer == pointer, "the test needs the same memory"
            side.synchronize()
            assert set(result.tolist()) == {1.0}


def test_torch_lives_on_beside_us() -> None:
    a = torch.randn(512, 512, device="cuda")
    before = (a @ a).cpu()
    ours = ts.from_dlpack(a)
    y = CudaExecutable(SCALE, ptx()).bind([ours.reshape(-1).geometry, 1.0])(ours.reshape(-1).geometry, 2.0)
    ts.device("cuda:0").backend.synchronize()
    torch.testing.assert_close((a @ a).cpu(), before)
    np.testing.assert_array_equal(y.cpu().numpy(), a.cpu().numpy().reshape(-1) * np.float32(2))
    gradient = torch.ones(3, device="cuda", requires_grad=True)
    (gradient * 2).sum().backward()
    assert gradient.grad.tolist() == [2.0] * 3


class Captured:
    """Something of torch's, captured into a graph as torch does it where nothing else is said."""

    def __init__(self) -> None:
        self.x = torch.zeros(100, device="cuda")
        self.graph = torch.cuda.CUDAGraph()

    def around(self, action: Any) -> None:
        torch.cuda.synchronize()
        with torch.cuda.stream(torch.cuda.current_stream()), torch.cuda.graph(self.graph):
            doubled = self.x * 2
            action()
            self.result = doubled + 1

    def check(self) -> None:
        for value in (3.0, 4.0):
            self.x.fill_(value)
            self.graph.replay()
            assert self.result.tolist() == [2 * value + 1] * 100


def test_what_goes_while_torch_captures_does_not_break_it_off() -> None:
    """Memory of a stream, an event, a stream, a module and a graph of ours, which may go at any time."""
    stream = Stream()
    stream.wait_for(Stream.wrap(0))
    run = CudaExecutable(SCALE, ptx())
    with stream:
        x = ts.asarray(np.full(1 << 16, 7.0, np.float32), device="cuda")
        memory = run.bind([x.geometry, 1.0])(x.geometry, 2.0)
        with Graph() as graph:
            y = run.bind([x.geometry, 1.0])(x.geometry, 3.0)
    gone: list[Any] = [stream, x, memory, run, graph, y, Event(timing=True)]
    del stream, run, x, memory, graph, y
    synchronize()
    captured = Captured()

    def go() -> None:
        gone.clear()
        gc.collect()

    captured.around(go)
    captured.check()


def test_threads_of_ours_may_ask_the_driver_while_torch_captures() -> None:
    event = Event(timing=True)
    event.record()
    kept: list[Any] = [Stream()]
    synchronize()
    captured = Captured()

    def work() -> bool:
        before_work()
        with kept[0]:
            x = ts.asarray(np.full(1 << 20, 7.0, np.float32), device="cuda")
            assert x.tolist()[-1] == 7.0
        del x
        kept.clear()
        gc.collect()
        return event.is_done()

    with ThreadPoolExecutor(1) as pool:
        captured.around(lambda: pool.submit(work).result())
    captured.check()
