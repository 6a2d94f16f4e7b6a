"""Quantised tensors: small integers with one scale per channel, kept together."""

from __future__ import annotations

from dataclasses import dataclass

from tessera.dtypes.promotion import as_dtype
from tessera.dtypes.quantize import dequantize as dequantize_arrays
from tessera.dtypes.quantize import quantize as quantize_array
from tessera.dtypes.types import DType, f32
from tessera.errors import DtypeError
from tessera.runtime.device.memory import aligned
from tessera.runtime.tensor.creation import asarray
from tessera.runtime.tensor.interface import DTypeLike
from tessera.runtime.tensor.operators import Operand
from tessera.runtime.tensor.tensor import Tensor


@dataclass(frozen=True, slots=True)
class QuantizedTensor:
    """`values[i] · scales[channel of i]`; a pytree with the two tensors as its leaves."""

    values: Tensor
    scales: Tensor
    dtype: DType

    def dequantize(self, dtype: DTypeLike = f32) -> Tensor:
        """The numbers that are meant, rounded once into `dtype`."""
        target = as_dtype(dtype)
        numbers = dequantize_arrays(self.values.numpy(), self.scales.numpy(), self.dtype, target)
        return Tensor.wrap(aligned(numbers), target)


def quantize(x: Operand, dtype: DType) -> QuantizedTensor:
    """`x` in `dtype`, which is i8 or i4 with a channel axis, such as `i8 @ scaled(0)`."""
    tensor = asarray(x)
    if tensor.dtype.policy.loss_scale is not None:
        raise DtypeError(
            f"quantize takes plain values, got {tensor.dtype}", hint=f"cast first: .to({tensor.dtype.base})"
        )
    values, scales = quantize_array(tensor.numpy(), dtype)
    return QuantizedTensor(Tensor.wrap(aligned(values), dtype), Tensor.wrap(aligned(scales), f32), dtype)


def dequantize(x: QuantizedTensor, dtype: DTypeLike = f32) -> Tensor:
    """The numbers that `x` stands for, rounded once into `dtype`."""
    return x.dequantize(dtype)
