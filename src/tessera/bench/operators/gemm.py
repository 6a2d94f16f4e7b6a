"""GEMM, ours against the peers'."""

from __future__ import annotations

from typing import Any

import numpy as np

from tessera import stdlib
from tessera.bench.instruments.libraries import library
from tessera.bench.measuring.definition import Built, implementation
from tessera.bench.measuring.frameworks import Array
from tessera.bench.measuring.precision import Precision
from tessera.bench.operator import OperatorBenchmark
from tessera.bench.results.definitions import ProblemSize
from tessera.runtime.tensor.creation import empty
from tessera.tile.language.schedule import Schedule

_GPU_BLOCKS = 128, 128, 64


def _blocks(size: ProblemSize, precision: Precision) -> tuple[int, int, int]:
    """The blocks that measured best on processors, by the number of rows."""
    if precision.name == "bf16":
        return 32, 512, size["k"]
    rows = size["m"]
    return (256, 256, size["k"]) if rows >= 1024 else (128, 128, size["k"]) if rows >= 512 else (64, 128, size["k"])


def _built(size: ProblemSize, precision: Precision, block: tuple[int, int, int], device: str) -> Built:
    grid = -(-size["m"] // block[0]), -(-size["n"] // block[1])
    run = stdlib.gemm.with_schedule(Schedule(block=block)).assume()[grid]

    def output() -> Any:
        return empty((size["m"], size["n"]), dtype=precision.dtype, device=device)

    def multiply(a: Any, b: Any) -> Any:
        c = output()
        run(a, b, c)
        return c

    return Built(multiply, run, output=output)


class GemmBenchmark(OperatorBenchmark):
    name = "gemm"
    description = "C = A·B"
    sizes = ({"m": 1024, "n": 1024, "k": 1024}, {"m": 512, "n": 512, "k": 64}, {"m": 128, "n": 1024, "k": 64})
    gpu = ({"m": 4096, "n": 4096, "k": 4096}, {"m": 8192, "n": 8192, "k": 8192})
    quick = ({"m": 512, "n": 512, "k": 64}, {"m": 512, "n": 512, "k": 512})

    def shapes(self, size: ProblemSize) -> list[tuple[int, ...]]:
        return [(size["m"], size["k"]), (size["k"], size["n"])]

    def output_shape(self, size: ProblemSize) -> tuple[int, ...]:
        return size["m"], size["n"]

    def truth(self, size: ProblemSize, rows: Array, *inputs: Array) -> Array:
        return inputs[0][rows] @ inputs[1]

    def row_cost(self, size: ProblemSize) -> int:
        return size["n"] * size["k"] // 64

    def flops(self, size: ProblemSize) -> float:
        return 2.0 * size["m"] * size["n"] * size["k"]

    def smallest(self, size: ProblemSize) -> ProblemSize:
        return {"m": 1, "n": 16, "k": 16}

    @implementation("tessera")
    def tessera(self, size: ProblemSize, precision: Precision) -> Built:
        return _built(size, precision, _blocks(size, precision), "cpu")

    @implementation("tessera_cuda")
    def tessera_cuda(self, size: ProblemSize, precision: Precision) -> Built:
        return _built(size, precision, _GPU_BLOCKS, "cuda:0")

    @implementation("torch")
    def torch(self, size: ProblemSize, precision: Precision) -> Any:
        return library("torch").mm

    @implementation("torch_cuda")
    def torch_cuda(self, size: ProblemSize, precision: Precision) -> Any:
        return library("torch").mm

    @implementation("numpy")
    def numpy(self, size: ProblemSize, precision: Precision) -> Any:
        def narrow(a: Array, b: Array) -> Array:
            return (a.astype(np.float32) @ b.astype(np.float32)).astype(a.dtype)

        return np.matmul if precision.name in ("f32", "f64") else narrow
