"""Attention as its definition says it, in float64 on the host: what everything else is compared with."""

from __future__ import annotations

from typing import Any

import numpy as np

from tessera.dtypes import casting
from tessera.dtypes.types import f64
from tessera.metatracing import AttentionParams, ExecutionTier, RuntimeResult
from tessera.runtime.tensor import Tensor


class ReferenceFlashAttention:
    """softmax(scale·q·kᵀ)·v, one head after the other, scores as a whole."""

    def compute(self, q: Tensor, k: Tensor, v: Tensor, params: AttentionParams, heads: int | None = None) -> Any:
        """The result in float64: of all heads, or of the first and the last few of them, as many as are asked for."""
        queries, keys, values = (_flat(one) for one in (q, k, v))
        chosen = heads_of(queries.shape[0], heads)
        scale, rows, columns = params.scale(q.shape[-1]), queries.shape[-2], keys.shape[-2]
        seen = np.tri(rows, columns, dtype=np.bool_)
        found = np.empty((len(chosen), rows, values.shape[-1]))
        for place, head in enumerate(chosen):
            scores = scale * (_double(queries[head], q) @ _double(keys[head], k).T)
            if params.is_causal:
                scores[~seen] = -np.inf
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            found[place] = weights @ _double(values[head], v) / weights.sum(-1, keepdims=True)
        return found

    def execute(
        self, q: Tensor, k: Tensor, v: Tensor, o: Tensor, params: AttentionParams | None = None
    ) -> RuntimeResult:
        """The same into `o`, rounded to its type."""
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
    flat = _flat(result)
    return np.stack([_double(flat[head], result) for head in heads_of(flat.shape[0], heads)])


def _flat(tensor: Tensor) -> Any:
    array = tensor.cpu().numpy()
    return array.reshape(-1, *array.shape[-2:])


def _double(stored: Any, tensor: Tensor) -> Any:
    return casting.cast(np.ascontiguousarray(stored), tensor.dtype, f64)
