"""Checks what preparing makes of kernels as people write them: results stay, few ops on whole tiles are left."""

from __future__ import annotations

from collections import Counter
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from nv_runs import at_tile_level
from test_cpu_lowering import instance

from tessera import Schedule, stdlib
from tessera.interpreters.core.engine import symbol_in
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_type
from tessera.targets.cuda.lower.legalize import legalize

bf16 = ml_dtypes.bfloat16
M, N, D = 32, 16, 32


def _given(name: str) -> tuple[Any, list[Any], dict[str, Any]]:
    generator = np.random.default_rng(0)

    def make(*shape: int) -> Any:
        return generator.standard_normal(shape).astype(bf16)

    tensors = [make(2, 70, D) for _ in range(3)]
    match name:
        case "own_score" | "soft_cap":
            return stdlib.attention, tensors, {"score": getattr(stdlib, name)}
        case "sigmoid_attention":
            return stdlib.sigmoid_attention, [*tensors, -2.0], {}
        case "alibi_attention":
            return stdlib.alibi_attention, [*tensors, np.asarray([0.5, 0.25], np.float32)], {}
        case _:
            return stdlib.mlp, [make(70, D), make(D, 48), make(48, D)], {}


# Ops on tiles of scores: what is left of them, by function.
LEAST = {
    "own_score": Counter(max=1, mul=2, add=1, sub=1, exp2=1, cast=1, select=1),
    "soft_cap": Counter(mul=2, exp2=2, add=2, reciprocal=1, sub=1, cast=1, select=1, min=1),
    "alibi_attention": Counter(sub=2, cast=2, abs=1, mul=2, add=1, exp2=1, select=1),
    "sigmoid_attention": Counter(mul=3, add=2, exp2=1, reciprocal=1, cast=1, min=1),
    "mlp": Counter(abs=1, min=1, fma=6, max=1, neg=1, exp2=1, cast=1),
}


@pytest.mark.parametrize("name", LEAST)
def test_kernels_as_people_write_them(name: str) -> None:
    kernel, given, static = _given(name)
    module, function, values = instance(kernel.with_schedule(Schedule(block=(M, N, D))), given, static)
    made = module.clone()
    prepared = symbol_in(made, function, tile.FuncOp)
    legalize(prepared, contract=True)
    ops = [op for op in prepared.body.walk() if isinstance(op, tile.EwOp)]
    assert Counter(op.fn.data for op in ops if tile_type(op.result).get_shape() == (M, N)) == LEAST[name]
    expected, found = (at_tile_level(program, function, values)[-1] for program in (module, made))
    wide = expected.astype(np.float64)
    assert np.linalg.norm(found.astype(np.float64) - wide) <= 3e-3 * np.linalg.norm(wide)
