"""Attention: softmax(Q·Kᵀ/√D)·V, causal or not, ours against the peers'."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from tessera import stdlib
from tessera.bench.configs import StandardBenchmarkConfigs
from tessera.bench.instruments.libraries import library
from tessera.bench.measuring.definition import Built, implementation
from tessera.bench.measuring.frameworks import Array
from tessera.bench.measuring.precision import Precision
from tessera.bench.operator import OperatorBenchmark
from tessera.bench.results.definitions import ProblemSize
from tessera.tile.language.schedule import Schedule


def _size(batch: int, heads: int, length: int, width: int, causal: bool = True) -> dict[str, Any]:
    return {"batch_size": batch, "num_heads": heads, "seq_len": length, "head_dim": width, "causal": causal}


def _built(size: ProblemSize, block: tuple[int, int]) -> Built:
    kernel = stdlib.attention.with_schedule(Schedule(block=block))
    mask = stdlib.causal if size["causal"] else None
    return Built(partial(kernel, mask=mask), kernel, {"mask": mask})


class FlashAttentionBenchmark(OperatorBenchmark):
    """The specification's example benchmark, with its sizes."""

    name = "flash_attention"
    description = "Flash Attention with online softmax computation"
    precisions = ("f32", "fp16", "bf16", "fp8_e4m3@accum(fp32)", "fp8_e5m2@accum(fp32)")
    sizes = (
        *[
            _size(batch, heads, length, width)
            for batch in (1, 4, 16, 32)
            for heads in (8, 16, 32)
            for length in (512, 1024, 2048, 4096, 8192)
            for width in (64, 128)
        ],
        *[_size(1, 16, length, 64) for length in (16384, 32768, 65536)],
    )
    cpu = tuple(one.size for one in StandardBenchmarkConfigs.get_cpu_configs() if one.dtype == "f32")
    quick = (_size(1, 8, 256, 64), _size(1, 8, 512, 64), _size(1, 8, 1024, 64))

    def shapes(self, size: ProblemSize) -> list[tuple[int, ...]]:
        return [(size["batch_size"], size["num_heads"], size["seq_len"], size["head_dim"])] * 3

    def truth(self, size: ProblemSize, rows: Array, *inputs: Array) -> Array:
        q, k, v = inputs
        scores = q[..., rows, :] @ np.swapaxes(k, -1, -2) / math.sqrt(size["head_dim"])
        if size["causal"]:
            scores[..., rows[:, None] < np.arange(size["seq_len"])] = -np.inf
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return weights / weights.sum(-1, keepdims=True) @ v

    def row_cost(self, size: ProblemSize) -> int:
        return size["batch_size"] * size["num_heads"] * size["seq_len"]

    def flops(self, size: ProblemSize) -> float:
        pairs = size["batch_size"] * size["num_heads"] * size["seq_len"] ** 2
        return 4.0 * pairs * size["head_dim"] / (2 if size["causal"] else 1)

    def smallest(self, size: ProblemSize) -> ProblemSize:
        return _size(1, 1, 16, size["head_dim"], size["causal"])

    @implementation("tessera")
    def tessera(self, size: ProblemSize, precision: Precision) -> Built:
        return _built(size, (64, 512) if precision.storage.itemsize == 2 else (24, 256))

    @implementation("tessera_cuda")
    def tessera_cuda(self, size: ProblemSize, precision: Precision) -> Built:
        return _built(size, (128, 64))

    @implementation("torch")
    def torch_sdpa(self, size: ProblemSize, precision: Precision) -> Any:
        functional = library("torch.nn.functional")
        return partial(functional.scaled_dot_product_attention, is_causal=size["causal"])

    @implementation("torch_cuda")
    def torch_sdpa_cudnn(self, size: ProblemSize, precision: Precision) -> Any:
        attention, functional = library("torch.nn.attention"), library("torch.nn.functional")
        attend, causal = functional.scaled_dot_product_attention, size["causal"]
        backend = attention.SDPBackend.CUDNN_ATTENTION

        def by_cudnn(q: Any, k: Any, v: Any) -> Any:
            with attention.sdpa_kernel(backend):
                return attend(q, k, v, is_causal=causal)

        return by_cudnn

    @implementation("torch", slow_to_build=True)
    def inductor(self, size: ProblemSize, precision: Precision) -> Any:
        torch = library("torch")
        scale, causal = 1 / math.sqrt(size["head_dim"]), size["causal"]

        def attend(q: Any, k: Any, v: Any) -> Any:
            scores = (q @ k.transpose(-1, -2)).float() * scale
            if causal:
                seen = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
                scores = scores.masked_fill(~seen, -torch.inf)
            return torch.softmax(scores, -1).to(q.dtype) @ v

        return torch.compile(attend, dynamic=False)

    @implementation("numpy")
    def numpy(self, size: ProblemSize, precision: Precision) -> Any:
        seen = np.tri(size["seq_len"], dtype=bool) if size["causal"] else None
        scale = np.float32(1 / math.sqrt(size["head_dim"]))

        def attend(q: Array, k: Array, v: Array) -> Array:
            wide_q, wide_k, wide_v = (x.astype(np.float32, copy=False) for x in (q, k, v))
            scores = wide_q @ np.swapaxes(wide_k, -1, -2) * scale
            if seen is not None:
                scores = np.where(seen, scores, np.float32(-np.inf))
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            return (weights / weights.sum(-1, keepdims=True) @ wide_v).astype(q.dtype)

        return attend
