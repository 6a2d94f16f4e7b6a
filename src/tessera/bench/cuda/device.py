"""The GPU that contests run on: torch makes inputs and compares results there, the runtime keeps the time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tessera.bench.cuda.declarations import Call
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
}
_UNUSED = (1 << 13) - 1
"""The bits of an f32 number that one of tf32 does not have."""


class TorchInputs:
    """Inputs of a row, as torch tensors on the GPU; every number drawn from one generator."""

    def __init__(self, dtype: str, seed: int) -> None:
        self._torch = library("torch")
        self._dtype = dtype
        self._generator = self._torch.Generator(device="cuda").manual_seed(seed)
        self._made: list[tuple[Any, str, float]] = []

    def normal(self, *shape: int, dtype: str | None = None, scale: float = 1.0) -> Any:
        named = dtype or self._dtype
        made = self._torch.empty(shape, dtype=getattr(self._torch, _TYPES[named]), device="cuda")
        self._made.append((made, named, scale))
        self._fill(made, named, scale)
        return made

    def refill(self) -> None:
        """New numbers into all inputs, where they are."""
        for tensor, dtype, scale in self._made:
            self._fill(tensor, dtype, scale)

    def _fill(self, tensor: Any, dtype: str, scale: float) -> None:
        numbers = self._torch.randn(tensor.shape, device="cuda", generator=self._generator) * scale
        if dtype == "i8":
            numbers = numbers.round().clamp(-128, 127)
        elif dtype == "tf32":
            numbers = (numbers.view(self._torch.int32) & ~_UNUSED).view(self._torch.float32)
        tensor.copy_(numbers)


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

    def copying(self, moved: float) -> Call:
        source = self._torch.empty(int(moved) // 2, dtype=self._torch.uint8, device="cuda").random_(0, 255)
        target = self._torch.empty_like(source)

        def copy() -> Any:
            return target.copy_(source)

        return copy

    def size(self, result: Any) -> int:
        return self._tensor(result).nbytes

    def poison(self, result: Any) -> None:
        """All bits set: no number in any of the floating-point types."""
        tensor = self._tensor(result)
        if tensor.is_contiguous():
            tensor.view(self._torch.uint8).fill_(255)
        else:
            tensor.fill_(float("nan"))

    def error(self, result: Any, truth: Any, part: Callable[[Any], Any]) -> float:
        found = part(self._tensor(result))
        if found.shape != truth.shape:
            return float("inf")
        norm = self._torch.linalg.vector_norm
        away, whole = norm(found.double() - truth).item(), norm(truth).item()
        relative = away / whole if whole > 0 else away
        return relative if math.isfinite(relative) else float("inf")

    def rounding(self, truth: Any, dtype: str) -> float:
        rounded = truth.to(getattr(self._torch, _TYPES[dtype]))
        return self.error(rounded, truth, lambda whole: whole)

    def same(self, result: Any, kept: Any) -> bool:
        def bits(tensor: Any) -> Any:
            return tensor.contiguous().view(self._torch.uint8)

        return bool(self._torch.equal(bits(self._tensor(result)), bits(kept)))

    def kept(self, result: Any) -> Any:
        return self._tensor(result).clone()

    def conditions(self) -> dict[str, Any]:
        return gpu_conditions(self._index)

    def release(self) -> None:
        """Gives unused memory back to the device."""
        self._torch.cuda.empty_cache()
        Pool.of(Context.of(self._index)).trim()

    def _tensor(self, result: Any) -> Any:
        """As torch sees it, over the same memory."""
        return result if isinstance(result, self._torch.Tensor) else self._torch.from_dlpack(result)
