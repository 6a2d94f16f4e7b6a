"""The GPU that contests run on: torch makes inputs and compares results there, the runtime keeps the time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import cycle
from typing import Any

from tessera.bench.cuda.declarations import Call, TorchTensor
from tessera.bench.instruments import gpu_timing as timing
from tessera.bench.instruments.gpu_conditions import gpu_conditions
from tessera.bench.instruments.libraries import library
from tessera.runtime.cuda.context import Context
from tessera.runtime.cuda.pool import Pool
from tessera.runtime.cuda.streams import Event, synchronize

_TYPES = {
    "f64": "float64",
    "f32": "float32",
    "tf32": "float32",
    "f16": "float16",
    "bf16": "bfloat16",
    "f8e4m3": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2",
    "i8": "int8",
    "u8": "uint8",
    "i32": "int32",
    "i64": "int64",
}
_BEYOND = 2.5
_ALIGNED = 1024
"""Bytes: where buffers of copies begin."""
_UNUSED = (1 << 13) - 1
"""The bits of an f32 number that one of tf32 does not have."""


def copies_beyond_cache(nbytes: float) -> int:
    """How many buffers of this size are more than twice the L2 cache, so that calls in rotation find none there."""
    return max(1, math.ceil(_BEYOND * Context.of(0).properties.l2_cache / max(nbytes, 1.0)))


def in_rotation(calls: Sequence[Call]) -> Call:
    """Each call of it is the next of these."""
    following = cycle(calls)

    def call() -> Any:
        return next(following)()

    return call


def made_late(make: Callable[[], Call]) -> Call:
    """A call that is made ready when it is first called: if that fails, it is out, and its row is not."""
    made: list[Call] = []

    def call() -> Any:
        if not made:
            made.append(make())
        return made[0]()

    return call


class TorchInputs:
    """Inputs of a row, as torch tensors on the GPU; every number drawn from one generator."""

    def __init__(self, dtype: str, seed: int, device: str = "cuda") -> None:
        self._torch = library("torch")
        self._dtype, self.device = dtype, device
        self._generator = self._torch.Generator(device=device).manual_seed(seed)
        self._fills: list[Callable[[], None]] = []

    def normal(self, *shape: int, dtype: str | None = None, scale: float = 1.0, copies: int = 0) -> TorchTensor:
        named = dtype or self._dtype

        def numbers() -> TorchTensor:
            found = self._torch.randn(shape, device=self.device, generator=self._generator).mul_(scale)
            if named == "i8":
                return found.round_().clamp_(-128, 127)
            return (found.view(self._torch.int32) & ~_UNUSED).view(self._torch.float32) if named == "tf32" else found

        return self._filled(shape, named, copies, numbers)

    def integers(self, low: int, high: int, *shape: int, dtype: str = "i8", copies: int = 0) -> TorchTensor:
        def numbers() -> TorchTensor:
            return self._torch.randint(low, high, shape, device=self.device, generator=self._generator)

        return self._filled(shape, dtype, copies, numbers)

    def derived(self, compute: Callable[[], TorchTensor]) -> TorchTensor:
        made = compute()
        self._fills.append(lambda: made.copy_(compute()))
        return made

    def refill(self) -> None:
        """New numbers into all inputs, where they are."""
        for fill in self._fills:
            fill()

    def _filled(
        self, shape: tuple[int, ...], dtype: str, copies: int, numbers: Callable[[], TorchTensor]
    ) -> TorchTensor:
        whole = (copies, *shape) if copies else shape
        made = self._torch.empty(whole, dtype=getattr(self._torch, _TYPES[dtype]), device=self.device)

        def fill() -> None:
            made.copy_(numbers())

        fill()
        self._fills.append(fill)
        return made


class TorchGpu:
    """One GPU; everything is on the default stream, which torch and we share."""

    def __init__(self, index: int = 0) -> None:
        self.properties = Context.of(index).properties  # says what is missing where there is no GPU
        self._torch = library("torch")
        self._torch.cuda.init()
        self.flush: Callable[[], None] = timing.Flush(f"cuda:{index}")
        self._index = index

    def event(self) -> Event:
        return timing.make_event()

    def synchronize(self) -> None:
        synchronize()

    def capture(self, call: Call, calls: int, *, ours: bool) -> timing.OurGraph | timing.TorchGraph:
        repeated = [call] * calls
        return timing.OurGraph(repeated) if ours else timing.TorchGraph(repeated)

    def queue(self, call: Call, calls: int) -> timing.Queued:
        return timing.Queued([call] * calls)

    def copying(self, moved: float) -> Call:
        copies, nbytes = copies_beyond_cache(moved), int(moved) // 2
        rows = copies, -(-nbytes // _ALIGNED) * _ALIGNED
        source = self._torch.empty(rows, dtype=self._torch.uint8, device="cuda").random_(0, 255)
        target = self._torch.empty_like(source)

        def copy(index: int) -> TorchTensor:
            return target[index, :nbytes].copy_(source[index, :nbytes])

        return in_rotation([partial(copy, index) for index in range(copies)])

    def size(self, result: object) -> int:
        return self._tensor(result).nbytes

    def poison(self, result: object) -> None:
        """All bits set: no number in any of the floating-point types."""
        tensor = self._tensor(result)
        if tensor.is_contiguous():
            tensor.view(self._torch.uint8).fill_(255)
        else:
            tensor.fill_(float("nan"))

    def error(self, result: object, truth: TorchTensor, part: Callable[[TorchTensor], TorchTensor]) -> float:
        found = part(self._tensor(result))
        if found.shape != truth.shape:
            return float("inf")
        norm = self._torch.linalg.vector_norm
        away, whole = norm(found.double() - truth).item(), norm(truth).item()
        relative = away / whole if whole > 0 else away
        return relative if math.isfinite(relative) else float("inf")

    def rounding(self, truth: TorchTensor, dtype: str) -> float:
        rounded = truth.to(getattr(self._torch, _TYPES[dtype]))
        return self.error(rounded, truth, lambda whole: whole)

    def same(self, result: object, kept: TorchTensor) -> bool:
        def bits(tensor: TorchTensor) -> TorchTensor:
            return tensor.contiguous().view(self._torch.uint8)

        return bool(self._torch.equal(bits(self._tensor(result)), bits(kept)))

    def kept(self, result: object) -> TorchTensor:
        return self._tensor(result).clone()

    def conditions(self) -> dict[str, Any]:
        return gpu_conditions(self._index)

    def is_lost(self) -> bool:
        """Whether the driver has given up this process: after an illegal access it refuses everything."""
        try:
            self._torch.cuda.synchronize()
        except RuntimeError:
            return True
        return False

    def release(self) -> None:
        """Gives unused memory back to the device."""
        self._torch.cuda.empty_cache()
        Pool.of(Context.of(self._index)).trim()

    def _tensor(self, result: object) -> TorchTensor:
        """As torch sees it, over the same memory."""
        return result if isinstance(result, self._torch.Tensor) else self._torch.from_dlpack(result)
