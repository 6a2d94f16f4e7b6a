"""What the tests of ranks run: `mpiexec -n 3 python rank_checks.py SCENARIO`; a rank that finds a mistake fails."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import tessera as ts
from tessera import distributed
from tessera.dtypes import casting
from tessera.errors import DeviceError, DtypeError, EffectError, ShapeError, TesseraError
from tessera.metatracing import MetaTracingRuntime, RuntimeConfig
from tessera.metatracing.ranks import DistributedExecutionTracer

TYPES = (ts.f32, ts.f64, ts.f16, ts.bf16, ts.f8e4m3, ts.f8e4m3 @ ts.saturate, ts.i8, ts.i32, ts.i64, ts.u16)
SHAPES = ((), (1,), (7,), (6, 5), (3, 0), (2, 3, 4))


def drawn(shape: tuple[int, ...], dtype: ts.DType, rank: int) -> ts.Tensor:
    """The same on every rank that asks: so each knows what the others have."""
    random = np.random.default_rng((rank, len(shape), dtype.bits))
    if dtype.is_float:
        values = (40.0 * random.standard_normal(shape)).astype(np.float32)
        return ts.asarray(np.array(values)).to(dtype.base).to(dtype)
    return ts.asarray(random.integers(0, 100, shape).astype(np.int64)).to(dtype)


def folded(rows: list[Any], dtype: ts.DType, op: str) -> Any:
    """What a reduction has to give, bit for bit: ranks in order, in f32 or wider, rounded once."""
    if not dtype.is_float:
        total = rows[0].copy()
        for row in rows[1:]:
            total = {"sum": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}[op](total, row)
        return total
    wide = ts.f64 if dtype.base is ts.f64 else ts.f32
    rows = [casting.cast(np.array(row), dtype.base, wide) for row in rows]
    total = rows[0]
    for row in rows[1:]:
        function = {"sum": np.add, "mean": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}[op]
        with np.errstate(all="ignore"):
            total = np.asarray(function(total, row))
    total = np.asarray(total / len(rows) if op == "mean" else total).astype(wide.storage)
    return casting.cast(total, wide, dtype.base @ ts.saturate if dtype.policy.saturate else dtype.base)


def same(found: ts.Tensor, expected: Any) -> None:
    stored = found.numpy()
    assert stored.shape == np.shape(expected), (stored.shape, np.shape(expected))
    assert stored.tobytes() == np.ascontiguousarray(expected).astype(stored.dtype).tobytes(), (found, expected)


def reductions() -> None:
    rank, size = distributed.get_rank(), distributed.get_world_size()
    for dtype in TYPES:
        for shape in SHAPES:
            everyone = [drawn(shape, dtype, one).numpy() for one in range(size)]
            for op in ("sum", "max", "min", "prod", *(("mean",) if dtype.is_float else ())):
                own = drawn(shape, dtype, rank)
                assert distributed.all_reduce(own, op) is own
                same(own, folded(everyone, dtype, op))
        shape = (2 * size, 3)
        everyone = [drawn(shape, dtype, one).numpy() for one in range(size)]
        whole = folded(everyone, dtype, "sum")
        same(distributed.reduce_scatter(drawn(shape, dtype, rank)), whole[2 * rank : 2 * rank + 2])
    strided = ts.ones((4, 6))[:, ::2]
    distributed.all_reduce(strided)
    assert strided.tolist() == [[float(size)] * 3] * 4
    assert distributed.all_reduce(ts.asarray(np.array([rank == 0, False])), "max").tolist() == [True, False]


def movements() -> None:
    rank, size = distributed.get_rank(), distributed.get_world_size()
    for dtype in (*TYPES, ts.bool_, ts.i4):
        own = ts.asarray(np.arange(6).reshape(3, 2) % 2 + (rank if dtype.bits > 1 else 0)).to(dtype)
        everyone = [
            ts.asarray(np.arange(6).reshape(3, 2) % 2 + (one if dtype.bits > 1 else 0)).to(dtype) for one in range(size)
        ]
        same(distributed.all_gather(own), np.concatenate([one.numpy() for one in everyone]))
        last = own.copy()
        same(distributed.broadcast(last, root=size - 1), everyone[-1].numpy())
    parts = ts.asarray(np.arange(2 * size) + 100 * rank)
    expected = [value for one in range(size) for value in (2 * rank + 100 * one, 2 * rank + 1 + 100 * one)]
    assert distributed.all_to_all(parts).tolist() == expected
    assert distributed.all_gather(ts.zeros((0, 3))).shape == (0, 3)
    transposed = ts.asarray(np.arange(6.0).reshape(2, 3)).T
    assert distributed.all_gather(transposed).shape == (3 * size, 2)


def refused(kind: type[TesseraError], words: str, call: Callable[[], object]) -> None:
    """All ranks are told, and none of them hangs."""
    told = ""
    try:
        call()
    except kind as error:
        told = str(error)
    assert words in told, told or f"not refused: {words}"
    distributed.barrier()  # the group goes on


def refusals() -> None:
    rank, size = distributed.get_rank(), distributed.get_world_size()
    refused(
        ShapeError,
        f"rank {size - 1}: all_reduce(sum) of f32 [{size - 1}, 2]",
        lambda: distributed.all_reduce(ts.ones((rank, 2))),
    )
    refused(DtypeError, "different types", lambda: distributed.all_gather(ts.ones((2,), (ts.f32, ts.f16)[rank % 2])))
    refused(
        EffectError,
        "different collectives",
        lambda: distributed.all_reduce(ts.ones((2,))) if rank else distributed.barrier(),
    )
    refused(EffectError, "different collectives", lambda: distributed.broadcast(ts.ones((2,)), root=rank))
    # What only one rank sees is told to all.
    words = (
        "expected a tensor, got list" if rank == 0 else "rank 0: all_reduce cannot be done here: all_reduce: expected a"
    )
    given: Any = [1.0] if rank == 0 else ts.ones((1,))
    refused(EffectError, words, lambda: distributed.all_reduce(given))
    refused(
        ShapeError,
        f"{size + 1}, does not split into {size} equal parts",
        lambda: distributed.all_to_all(ts.ones((size + 1,))),
    )
    refused(DtypeError, "mean of i32", lambda: distributed.all_reduce(ts.ones((2,), ts.i32), "mean"))
    refused(DtypeError, "expected numbers", lambda: distributed.all_reduce(ts.ones((2,), ts.bool_)))
    refused(TesseraError, "among sum, mean", lambda: distributed.all_reduce(ts.ones((2,)), "xor"))
    refused(TesseraError, "no rank 9", lambda: distributed.broadcast(ts.ones((2,)), root=9))
    refused(EffectError, "already", distributed.initialize_process_group)


def traces() -> None:
    rank, size = distributed.get_rank(), distributed.get_world_size()
    config = RuntimeConfig(enable_distributed_tracing=True, distributed_rank=rank, distributed_world_size=size)
    with MetaTracingRuntime(config) as runtime:
        heard = runtime.distributed
        assert heard is not None
        with DistributedExecutionTracer(threshold=0.3) as tracer:
            distributed.barrier()
            time.sleep(0.6 if rank == size - 1 else 0.0)  # much longer than ranks wait for a busy machine's processors
            distributed.all_reduce(ts.ones((8, 3)))
            for _ in range(2):
                distributed.all_gather(ts.ones((2,), ts.bf16))
        trace = tracer.trace()
        assert len(heard.events) == 4
    (reduced,), (gathered,) = trace.all_reduce_patterns, trace.all_gather_patterns
    assert (trace.rank, trace.world_size) == (rank, size)
    assert (reduced.count, reduced.nbytes, reduced.shape, reduced.dtype) == (1, 96, (8, 3), "f32")
    assert (gathered.count, gathered.nbytes) == (2, 4)
    (uneven,) = [one for one in trace.load_imbalance if one.kind == "all_reduce"]
    assert uneven.slowest_rank == size - 1
    assert uneven.imbalance > 0.5
    assert uneven.work_ms[-1] > 550
    assert (uneven.waited_ms > 200) == (rank < size - 1)
    sent = {one.kind: one.bytes_sent for one in trace.network_stats}
    assert sent == {"barrier": 0, "all_reduce": round(2 * (size - 1) / size * 96), "all_gather": 2 * (size - 1) * 4}
    distributed.barrier()
    assert len(tracer.events) == len(heard.events) == 4  # neither listens any more
    inside = tracer.trace_distributed_execution(lambda: distributed.all_reduce(ts.ones((2,))).tolist())
    assert inside.result == [float(size)] * 2
    assert len(inside.all_reduce_patterns) == 1


def alone() -> None:
    """Ranks that the others wait for in vain."""
    if distributed.get_rank() == 0:
        if sys.argv[2] == "ends":
            os._exit(0)
        if sys.argv[2] == "raises":
            raise ValueError("out of luck")
        time.sleep(3)
        return
    try:
        distributed.barrier()
    except DeviceError as error:
        print("gave up:", error.message)  # noqa: T201
        raise


if __name__ == "__main__":
    distributed.initialize_process_group("mpi", timeout_s=1 if sys.argv[1] == "alone" else 60)
    if sys.argv[1] == "alone":
        alone()
    else:
        for name in sys.argv[1:]:
            globals()[name]()
    distributed.destroy_process_group()
    assert not distributed.is_initialized()
