"""Collectives over tensors: every rank makes the same call, and what differs between them is refused on all of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tessera.distributed import host
from tessera.distributed.group import Intent, ProcessGroup, current_group
from tessera.dtypes.types import DType, Kind
from tessera.errors import DtypeError, EffectError, ShapeError, TesseraError
from tessera.metatracing.ranks import LISTENERS, CollectiveEvent
from tessera.runtime.device.device import CPU
from tessera.runtime.device.memory import address, aligned, aligned_copy
from tessera.runtime.tensor.tensor import Tensor


def all_reduce(tensor: Tensor, op: str = "sum") -> Tensor:
    """The elements of all ranks' tensors taken together, in place on every rank: sum, mean, prod, max or min.

    On the host ranks are added in their order, narrow floats in f32 and rounded once; all ranks get the same bits.
    """

    def run(group: ProcessGroup) -> Tensor:
        if group.nccl is not None and group.nccl.takes(tensor, group):
            group.nccl.all_reduce(tensor, op)
        else:
            _store(tensor, host.reduced(group, _host(tensor), tensor.dtype, op))
        return tensor

    def check(group: ProcessGroup) -> None:
        _check_op(op, tensor.dtype)
        _check_writable(tensor, "all_reduce")

    return _together("all_reduce", tensor, op, check, run, lambda size: 2 * (size - 1) / size)


def reduce_scatter(tensor: Tensor, op: str = "sum") -> Tensor:
    """This rank's part, of equal parts along the first axis, of what `all_reduce` would give; in fresh memory."""

    def run(group: ProcessGroup) -> Tensor:
        if group.nccl is not None and group.nccl.takes(tensor, group):
            return group.nccl.reduce_scatter(tensor, op)
        return _like(host.scattered(group, _host(tensor), tensor.dtype, op), tensor)

    def check(group: ProcessGroup) -> None:
        _check_op(op, tensor.dtype)
        _check_parts(tensor, group, "reduce_scatter")

    return _together("reduce_scatter", tensor, op, check, run, lambda size: (size - 1) / size)


def all_gather(tensor: Tensor) -> Tensor:
    """The tensors of all ranks, one behind the other along the first axis, in fresh memory on every rank."""

    def run(group: ProcessGroup) -> Tensor:
        if group.nccl is not None and group.nccl.takes(tensor, group):
            return group.nccl.all_gather(tensor)
        return _like(host.gathered(group, _host(tensor)), tensor)

    def check(group: ProcessGroup) -> None:
        _check_axes(tensor, "all_gather")

    return _together("all_gather", tensor, "", check, run, lambda size: size - 1)


def all_to_all(tensor: Tensor) -> Tensor:
    """Of equal parts along the first axis, part i goes to rank i; what came from rank i is part i of the result."""

    def run(group: ProcessGroup) -> Tensor:
        if group.nccl is not None and group.nccl.takes(tensor, group):
            return group.nccl.all_to_all(tensor)
        return _like(host.exchanged(group, _host(tensor)), tensor)

    def check(group: ProcessGroup) -> None:
        _check_parts(tensor, group, "all_to_all")

    return _together("all_to_all", tensor, "", check, run, lambda size: (size - 1) / size)


def broadcast(tensor: Tensor, root: int = 0) -> Tensor:
    """The root's tensor, in place on every rank."""

    def run(group: ProcessGroup) -> Tensor:
        if group.nccl is not None and group.nccl.takes(tensor, group):
            group.nccl.broadcast(tensor, root)
        else:
            _store(tensor, host.spread(group, _host(tensor), root))
        return tensor

    def check(group: ProcessGroup) -> None:
        if not 0 <= root < group.size:
            raise TesseraError(f"broadcast: there is no rank {root} among {group.size}", hint="ranks count from 0")
        _check_writable(tensor, "broadcast")

    return _together("broadcast", tensor, f"root {root}", check, run, lambda size: 1.0)


def barrier() -> None:
    """Waits until all ranks are here, and what this one has queued on its GPUs is done."""
    group = current_group("barrier")
    if group.nccl is not None:
        group.nccl.synchronize()
    began = time.perf_counter_ns()
    work = group.agree(Intent("barrier"))
    group.rested()
    _tell(group, "barrier", None, began, time.perf_counter_ns(), work, 0)


def _together(
    kind: str,
    tensor: Tensor,
    options: str,
    check: Callable[[ProcessGroup], None],
    run: Callable[[ProcessGroup], Tensor],
    share: Callable[[int], float],
) -> Tensor:
    """A collective: what is wrong here is told to all ranks, then all agree, then all do it."""
    group = current_group(kind)
    error: TesseraError | None = None
    if not isinstance(tensor, Tensor):
        error = EffectError(
            f"{kind}: expected a tensor, got {type(tensor).__name__}", hint="tessera.asarray makes one of it"
        )
        intent = Intent(kind, refused=error.message)
    else:
        intent = Intent(kind, options, str(tensor.dtype), tensor.shape, tensor.device.kind)
        try:
            check(group)
        except TesseraError as found:
            error, intent = found, Intent(kind, options, refused=found.message)
    began = time.perf_counter_ns()
    work = group.agree(intent, error)
    met = time.perf_counter_ns()
    result = run(group) if tensor.size else _empty(kind, tensor, group)
    if LISTENERS and tensor.device is not CPU:
        tensor.device.backend.synchronize()  # or its time would be that of queueing it
    group.rested()
    _tell(group, kind, tensor, began, met, work, round(share(group.size) * tensor.nbytes))
    return result


def _tell(
    group: ProcessGroup, kind: str, tensor: Tensor | None, began: int, met: int, work: tuple[int, ...], sent: int
) -> None:
    if not LISTENERS:
        return
    now = time.perf_counter_ns()
    about = ("", (), 0) if tensor is None else (str(tensor.dtype), tensor.shape, tensor.nbytes)
    event = CollectiveEvent(kind, *about, sent, now, met - began, now - began, group.rank, group.size, work)
    for listener in tuple(LISTENERS):
        listener(event)


def _empty(kind: str, tensor: Tensor, group: ProcessGroup) -> Tensor:
    """Of nothing comes nothing, of the right shape."""
    if kind in ("all_reduce", "broadcast"):
        return tensor
    first, rest = tensor.shape[0], tensor.shape[1:]
    length = {"all_gather": first * group.size, "reduce_scatter": first // group.size}.get(kind, first)
    return _like(np.empty((length, *rest), tensor.dtype.storage), tensor)


def _check_op(op: str, dtype: DType) -> None:
    if op not in host.OPS:
        raise TesseraError(
            f"expected an operation among {', '.join(host.OPS)}, got {op!r}", hint="sum is the usual one"
        )
    if dtype.kind is Kind.BOOL and op not in ("max", "min"):
        raise DtypeError(f"{op} of bool tensors: expected numbers", hint="max is `or`, min is `and`; or cast to i32")
    if op == "mean" and not dtype.is_float:
        raise DtypeError(f"mean of {dtype} tensors: expected floats", hint="use sum, and divide as you need it")
    if op == "prod" and dtype.policy.loss_scale is not None:
        raise DtypeError(f"prod of {dtype} tensors would multiply their loss scales", hint="cast them first")


def _check_writable(tensor: Tensor, kind: str) -> None:
    if not tensor.writable:
        raise EffectError(f"{kind} writes into its tensor, and this one is read-only", hint="give it a .copy()")
    if not tensor.device.backend.host_addressable and not tensor.geometry.flags.c_contiguous:
        raise EffectError(
            f"{kind} writes into its tensor, and on {tensor.device} a view with gaps cannot be written as a whole",
            shapes=[f"{list(tensor.shape)}, strides {list(tensor.strides)}"],
            hint="give it a .copy(), and use what comes back",
        )


def _check_axes(tensor: Tensor, kind: str) -> None:
    if tensor.ndim == 0:
        raise ShapeError(f"{kind}: expected at least one axis, this tensor has none", hint="reshape it to (1,)")


def _check_parts(tensor: Tensor, group: ProcessGroup, kind: str) -> None:
    _check_axes(tensor, kind)
    if tensor.shape[0] % group.size:
        raise ShapeError(
            f"{kind}: the first axis, of {tensor.shape[0]}, does not split into {group.size} equal parts",
            shapes=[str(list(tensor.shape))],
            hint="pad it to a multiple of the number of ranks",
        )


def _host(tensor: Tensor) -> Any:
    """The stored elements on the host, in C order."""
    return np.ascontiguousarray(tensor.cpu().numpy())


def _store(tensor: Tensor, values: Any) -> None:
    """Stored elements back into a tensor."""
    if tensor.device.backend.host_addressable:
        tensor.numpy()[...] = values
        return
    kept = aligned(values)
    tensor.device.backend.copy_from_host(tensor.pointer, address(kept), kept.nbytes)


def _like(values: Any, tensor: Tensor) -> Tensor:
    """Stored elements as a tensor of the same type on the same device."""
    made = Tensor.wrap(aligned_copy(values), tensor.dtype)
    return made if tensor.device is CPU else made.to(tensor.device)
