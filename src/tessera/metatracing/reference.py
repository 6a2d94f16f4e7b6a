"""Attention by its definition, in float64 on the host: the reference for all other implementations."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tessera.dtypes import casting
from tessera.dtypes.types import f64
from tessera.metatracing.attention import AttentionParams
from tessera.metatracing.runtime import RuntimeResult
from tessera.runtime.tensor.tensor import Tensor
from tessera.tiers.records import ExecutionTier


class ReferenceFlashAttention:
    """softmax(scale·q·kᵀ)·v, one head after the other, scores as a whole."""

    def compute(self, q: Tensor, k: Tensor, v: Tensor, params: AttentionParams, heads: int | None = None) -> Any:
        """The result in float64: of all heads, or of the first and the last few of them, as many as are asked for."""
        chosen = heads_of(prod(q.shape[:-2]), heads)
        scale, rows, columns = params.scale(q.shape[-1]), q.shape[-2], k.shape[-2]
        seen = np.tri(rows, columns, dtype=np.bool_)
        found = np.empty((len(chosen), rows, v.shape[-1]))
        for index, head in enumerate(chosen):
            scores = scale * (_head(q, head) @ _head(k, head).T)
            if params.is_causal:
                scores[~seen] = -np.inf
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            found[index] = weights @ _head(v, head) / weights.sum(-1, keepdims=True)
        return found

    def execute(
        self, q: Tensor, k: Tensor, v: Tensor, o: Tensor, params: AttentionParams | None = None
    ) -> RuntimeResult:
        """Computes the result into `o`, rounded to its type."""
        exact = self.compute(q, k, v, params or AttentionParams()).reshape(o.shape)
        rounded = casting.cast(exact, f64, o.dtype)
        if o.device.backend.host_addressable:
            o.numpy()[...] = rounded
        else:
            o[...] = Tensor.wrap(rounded, o.dtype).to(o.device)
        return RuntimeResult(o, ExecutionTier.TIER1_INTERPRETER)


def heads_of(count: int, wanted: int | None) -> list[int]:
    """Heads to look at: all, or some from both ends."""
    if wanted is None or wanted >= count:
        return list(range(count))
    return sorted({*range((wanted + 1) // 2), *range(count - wanted // 2, count)})


def picked(result: Tensor, heads: int | None = None) -> Any:
    """Those heads of a result, in float64."""
    chosen = heads_of(prod(result.shape[:-2]), heads)
    return np.stack([_head(result, head) for head in chosen])


def _head(tensor: Tensor, head: int) -> Any:
    """One head in float64. It alone comes from the device: all of them may be gigabytes."""
    at = tuple(int(one) for one in np.unravel_index(head, tensor.shape[:-2])) if tensor.ndim > 2 else ()
    stored = tensor[at].cpu().numpy() if at else tensor.cpu().numpy()
    return casting.cast(np.ascontiguousarray(stored), tensor.dtype, f64)
