"""Collectives over tensors: every rank makes the same call, and what differs between them is refused on all of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tessera.distributed import host
from tessera.distributed.group import Intent, ProcessGroup, current_group
from tessera.dtypes.types import Kind
from tessera.errors import DtypeError, EffectError, ShapeError, TesseraError
from tessera.metatracing.ranks import LISTENERS, CollectiveEvent
from tessera.runtime.device.device import CPU
from tessera.runtime.device.memory import address, aligned, aligned_copy
from tessera.runtime.tensor.tensor import Tensor


def all_reduce(tensor: Tensor, op: str = "sum") -> Tensor:
    """The elements of all ranks' tensors taken together, in place on every rank: sum, mean, prod, max or min.

    On the host ranks are added in their order, narrow floats in f32 and rounded once; all ranks get the same bits.
    """
    return _together("all_reduce", tensor, op, op)


def reduce_scatter(tensor: Tensor, op: str = "sum") -> Tensor:
    """This rank's part, of equal parts along the first axis, of what `all_reduce` would give; in fresh memory."""
    return _together("reduce_scatter", tensor, op, op)


def all_gather(tensor: Tensor) -> Tensor:
    """The tensors of all ranks, one behind the other along the first axis, in fresh memory on every rank."""
    return _together("all_gather", tensor, "")


def all_to_all(tensor: Tensor) -> Tensor:
    """Of equal parts along the first axis, part i goes to rank i; what came from rank i is part i of the result."""
    return _together("all_to_all", tensor, "")


def broadcast(tensor: Tensor, root: int = 0) -> Tensor:
    """The root's tensor, in place on every rank."""
    return _together("broadcast", tensor, f"root {root}", root)


def barrier() -> None:
    """Waits until all ranks are here, and what this one has queued on its GPUs is done."""
    group = current_group("barrier")
    if group.nccl is not None:
        group.nccl.synchronize()
    began = time.perf_counter_ns()
    work = group.agree(Intent("barrier"))
    group.rested()
    _tell(group, "barrier", None, began, time.perf_counter_ns(), work, 0)


def _together(kind: str, tensor: Tensor, said: str, *options: Any) -> Tensor:
    """A collective: what is wrong here is told to all ranks, then all agree, then all do it."""
    group, one = current_group(kind), _COLLECTIVES[kind]
    error: TesseraError | None = None
    if not isinstance(tensor, Tensor):
        error = EffectError(
            f"{kind}: expected a tensor, got {type(tensor).__name__}", hint="tessera.asarray makes one of it"
        )
        intent = Intent(kind, refused=error.message)
    else:
        intent = Intent(kind, said, str(tensor.dtype), tensor.shape, tensor.device.kind)
        try:
            for check in one.checks:
                check(kind, tensor, group, *options)
        except TesseraError as found:
            error, intent = found, Intent(kind, said, refused=found.message)
    began = time.perf_counter_ns()
    work = group.agree(intent, error)
    met = time.perf_counter_ns()
    result = _done(kind, tensor, group, *options) if tensor.size else _empty(kind, tensor, group)
    if LISTENERS and tensor.device is not CPU:
        tensor.device.backend.synchronize()  # or its time would be that of queueing it
    group.rested()
    _tell(group, kind, tensor, began, met, work, round(one.share(group.size) * tensor.nbytes))
    return result


def _done(kind: str, tensor: Tensor, group: ProcessGroup, *options: Any) -> Tensor:
    """By NCCL where it takes the tensor, else over the host."""
    one = _COLLECTIVES[kind]
    if group.nccl is not None and group.nccl.takes(tensor, group):
        made = getattr(group.nccl, kind)(tensor, *options)
        return tensor if one.in_place else made
    values = one.on_host(group, np.ascontiguousarray(tensor.cpu().numpy()), tensor.dtype, *options)
    if not one.in_place:
        return _like(values, tensor)
    _store(tensor, values)
    return tensor


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
    if _COLLECTIVES[kind].in_place:
        return tensor
    first, rest = tensor.shape[0], tensor.shape[1:]
    length = {"all_gather": first * group.size, "reduce_scatter": first // group.size}.get(kind, first)
    return _like(np.empty((length, *rest), tensor.dtype.storage), tensor)


def _check_op(kind: str, tensor: Tensor, group: ProcessGroup, op: str) -> None:
    dtype = tensor.dtype
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


def _check_root(kind: str, tensor: Tensor, group: ProcessGroup, root: int) -> None:
    if not 0 <= root < group.size:
        raise TesseraError(f"{kind}: there is no rank {root} among {group.size}", hint="ranks count from 0")


def _check_writable(kind: str, tensor: Tensor, *_: Any) -> None:
    if not tensor.writable:
        raise EffectError(f"{kind} writes into its tensor, and this one is read-only", hint="give it a .copy()")
    if not tensor.device.backend.host_addressable and not tensor.geometry.flags.c_contiguous:
        raise EffectError(
            f"{kind} writes into its tensor, and on {tensor.device} a view with gaps cannot be written as a whole",
            shapes=[f"{list(tensor.shape)}, strides {list(tensor.strides)}"],
            hint="give it a .copy(), and use what comes back",
        )


def _check_axes(kind: str, tensor: Tensor, *_: Any) -> None:
    if tensor.ndim == 0:
        raise ShapeError(f"{kind}: expected at least one axis, this tensor has none", hint="reshape it to (1,)")


def _check_parts(kind: str, tensor: Tensor, group: ProcessGroup, *_: Any) -> None:
    _check_axes(kind, tensor)
    if tensor.shape[0] % group.size:
        raise ShapeError(
            f"{kind}: the first axis, of {tensor.shape[0]}, does not split into {group.size} equal parts",
            shapes=[str(list(tensor.shape))],
            hint="pad it to a multiple of the number of ranks",
        )


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


@dataclass(frozen=True)
class _Collective:
    """What is asked of a tensor, how its elements on the host, in C order, become those of the result, and the cost."""

    checks: tuple[Callable[..., None], ...]
    on_host: Callable[..., Any]
    share: Callable[[int], float]
    """Of the tensor's bytes: what each of so many ranks sends."""
    in_place: bool = False


_COLLECTIVES = {
    "all_reduce": _Collective(
        (_check_op, _check_writable), host.reduced, lambda size: 2 * (size - 1) / size, in_place=True
    ),
    "reduce_scatter": _Collective((_check_op, _check_parts), host.scattered, lambda size: (size - 1) / size),
    "all_gather": _Collective((_check_axes,), host.gathered, lambda size: size - 1),
    "all_to_all": _Collective((_check_parts,), host.exchanged, lambda size: (size - 1) / size),
    "broadcast": _Collective((_check_root, _check_writable), host.spread, lambda size: 1.0, in_place=True),
}
