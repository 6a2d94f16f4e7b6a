"""Operators over rows: softmax, layer norm, RMS norm, and GELU with a bias."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np

from tessera import stdlib
from tessera.bench.instruments.libraries import library
from tessera.bench.measuring.definition import Implementation, implementation
from tessera.bench.measuring.frameworks import Array
from tessera.bench.measuring.precision import Precision
from tessera.bench.operator import OperatorBenchmark
from tessera.bench.results.definitions import ProblemSize
from tessera.tile.calls.function import Kernel
from tessera.tile.language.schedule import Schedule

_BLOCK = Schedule(block=(16, 16))
_GPU_ELEMENTS = 4096
"""Of a block's rows together: what a few warps hold in registers."""


class _Rowwise(OperatorBenchmark):
    """A kernel of `stdlib` beside torch's function: of a benchmark, these and a NumPy one are all there is to say."""

    sizes = ({"rows": 1024, "cols": 1024}, {"rows": 4096, "cols": 1024}, {"rows": 1024, "cols": 8192})
    quick = ({"rows": 1024, "cols": 1024}, {"rows": 4096, "cols": 1024})
    gpu = ({"rows": 16384, "cols": 4096}, {"rows": 4096, "cols": 1024}, {"rows": 16384, "cols": 8192})
    vectors = 0
    """How many inputs there are besides the rows, each as wide as a row."""
    flops_per_element = 1.0
    kernel: ClassVar[Kernel]

    def shapes(self, size: ProblemSize) -> list[tuple[int, ...]]:
        return [(size["rows"], size["cols"]), *[(size["cols"],)] * self.vectors]

    def flops(self, size: ProblemSize) -> float:
        return self.flops_per_element * size["rows"] * size["cols"]

    def smallest(self, size: ProblemSize) -> ProblemSize:
        return {"rows": 1, "cols": 16}

    def peer(self, cols: int) -> Any:
        """Torch's function of the inputs, for rows of so many elements."""
        raise self._undefined("peer")

    @implementation("tessera")
    def tessera(self, size: ProblemSize, precision: Precision) -> Kernel:
        return self.kernel.with_schedule(_BLOCK)

    @implementation("tessera_cuda")
    def tessera_cuda(self, size: ProblemSize, precision: Precision) -> Kernel:
        return self.kernel.with_schedule(Schedule(block=(max(1, _GPU_ELEMENTS // size["cols"]), 16)))

    @implementation("torch")
    def torch(self, size: ProblemSize, precision: Precision) -> Any:
        return self.peer(size["cols"])

    @implementation("torch_cuda")
    def torch_cuda(self, size: ProblemSize, precision: Precision) -> Any:
        return self.peer(size["cols"])

    @implementation("torch_cuda", slow_to_build=True)
    def inductor_cuda(self, size: ProblemSize, precision: Precision) -> Any:
        return library("torch").compile(self.peer(size["cols"]), dynamic=False)

    @implementation("torch", slow_to_build=True)
    def inductor(self, size: ProblemSize, precision: Precision) -> Any:
        return library("torch").compile(self.peer(size["cols"]), dynamic=False)


class SoftmaxBenchmark(_Rowwise):
    name = "softmax"
    description = "softmax over rows"
    flops_per_element = 5.0
    kernel = stdlib.softmax

    def truth(self, size: ProblemSize, rows: Array, *inputs: Array) -> Array:
        chosen = inputs[0][rows]
        weights = np.exp(chosen - chosen.max(-1, keepdims=True))
        return weights / weights.sum(-1, keepdims=True)

    def peer(self, cols: int) -> Any:
        return partial(library("torch").softmax, dim=-1)

    @implementation("numpy")
    def numpy(self, size: ProblemSize, precision: Precision) -> Any:
        def softmax(x: Array) -> Array:
            wide = x.astype(np.float32)
            weights = np.exp(wide - wide.max(-1, keepdims=True))
            return (weights / weights.sum(-1, keepdims=True)).astype(x.dtype)

        return softmax


class LayerNormBenchmark(_Rowwise):
    name = "layernorm"
    description = "layer norm over rows, with weight and bias"
    vectors = 2
    flops_per_element = 8.0
    kernel = stdlib.layernorm

    def truth(self, size: ProblemSize, rows: Array, *inputs: Array) -> Array:
        x, weight, bias = inputs
        centred = x[rows] - x[rows].mean(-1, keepdims=True)
        return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * weight + bias

    def peer(self, cols: int) -> Any:
        functional = library("torch.nn.functional")

        def layernorm(x: Any, weight: Any, bias: Any) -> Any:
            return functional.layer_norm(x, (cols,), weight, bias, 1e-5)

        return layernorm

    @implementation("numpy")
    def numpy(self, size: ProblemSize, precision: Precision) -> Any:
        def layernorm(x: Array, weight: Array, bias: Array) -> Array:
            wide = x.astype(np.float32)
            centred = wide - wide.mean(-1, keepdims=True)
            scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + np.float32(1e-5))
            return (scaled * weight.astype(np.float32) + bias.astype(np.float32)).astype(x.dtype)

        return layernorm


class RmsNormBenchmark(_Rowwise):
    name = "rmsnorm"
    description = "RMS norm over rows, with a weight"
    vectors = 1
    flops_per_element = 4.0
    kernel = stdlib.rmsnorm
    # Compiled by inductor it is measured on GPUs only.
    implementations: ClassVar[Mapping[str, Implementation]] = {
        name: made for name, made in _Rowwise.implementations.items() if name != "inductor"
    }

    def truth(self, size: ProblemSize, rows: Array, *inputs: Array) -> Array:
        x, weight = inputs
        return x[rows] / np.sqrt((x[rows] ** 2).mean(-1, keepdims=True) + 1e-6) * weight

    def peer(self, cols: int) -> Any:
        functional = library("torch.nn.functional")

        def rmsnorm(x: Any, weight: Any) -> Any:
            return functional.rms_norm(x, (cols,), weight, 1e-6)

        return rmsnorm

    @implementation("numpy")
    def numpy(self, size: ProblemSize, precision: Precision) -> Any:
        def rmsnorm(x: Array, weight: Array) -> Array:
            wide = x.astype(np.float32)
            scale = 1 / np.sqrt((wide**2).mean(-1, keepdims=True) + np.float32(1e-6))
            return (wide * scale * weight.astype(np.float32)).astype(x.dtype)

        return rmsnorm


class GeluBenchmark(_Rowwise):
    name = "gelu"
    description = "GELU (by erf) of rows plus a bias"
    vectors = 1
    flops_per_element = 12.0
    kernel = stdlib.gelu_bias

    def truth(self, size: ProblemSize, rows: Array, *inputs: Array) -> Array:
        shifted = inputs[0][rows] + inputs[1]
        return 0.5 * shifted * (1 + np.vectorize(math.erf)(shifted / math.sqrt(2)))

    def peer(self, cols: int) -> Any:
        functional = library("torch.nn.functional")

        def gelu(x: Any, bias: Any) -> Any:
            return functional.gelu(x + bias)

        return gelu
