"""How tensors are shown: the values at the edges, then shape, dtype with policy, and device."""

from __future__ import annotations

import numpy as np

from tessera.runtime.tensor.interface import TensorInterface

_EDGE = 3
_SHOWN = 60


def show(tensor: TensorInterface) -> str:
    """`Tensor([1., 2.], shape=(2,), dtype=f32, device=cpu)`; long axes keep three values at each end."""
    prefix = "Tensor("
    rest = f"shape={tensor.shape}, dtype={tensor.dtype}, device={tensor.device})"
    shorten = tensor.size > _SHOWN
    text = np.array2string(
        (_edges(tensor.cpu()) if shorten else tensor).values(),
        precision=4,
        threshold=0 if shorten else _SHOWN,
        edgeitems=_EDGE,
        separator=", ",
        prefix=prefix,
    )
    glue = ",\n" + " " * len(prefix) if "\n" in text else ", "
    return f"{prefix}{text}{glue}{rest}"


def _edges(tensor: TensorInterface) -> TensorInterface:
    """One value more than is shown of each long axis, so that the values between are neither copied nor cast."""
    for axis, count in enumerate(tensor.shape):
        if count > 2 * _EDGE + 1:
            ends = [*range(_EDGE + 1), *range(count - _EDGE, count)]
            tensor = tensor[(slice(None),) * axis + (ends,)]
    return tensor
