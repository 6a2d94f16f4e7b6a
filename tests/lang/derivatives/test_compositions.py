"""Random compositions of transforms give what JAX gives."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from compositions import LENGTH, TRANSFORMS, Node, built, composition, jax, pairs, tessera

import tessera as ts
from tessera import knobs
from tessera.errors import EffectError

COUNT = 17 * len(TRANSFORMS) ** 2
BATCH = 17
BOUND = 1e-10
# Programs of XLA take four times as long to make otherwise.
QUICKLY: Any = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}


def _compare(seed: int) -> bool:
    """Whether JAX has a value; then Tessera has the same."""
    j: Any = import_module("jax")

    node = composition(seed)
    x = np.random.default_rng(seed).standard_normal(LENGTH)
    try:
        with j.enable_x64(True):
            program = j.jit(built(jax(), node), compiler_options=QUICKLY)
            expected = np.asarray(program(j.numpy.asarray(x)))
    except (TypeError, NotImplementedError):  # forwards over a custom_vjp
        with suppress(EffectError):
            _ours(node, x)
        return False
    found = _ours(node, x)
    assert found.shape == expected.shape, node
    scale = max(1.0, float(np.max(np.abs(expected))))
    assert float(np.max(np.abs(found - expected))) <= BOUND * scale, (node, found, expected)
    return True


def _ours(node: Node, x: Any) -> Any:
    with knobs.interpret.using(True):
        return np.asarray(ts.jit(built(tessera(), node))(ts.asarray(x)))


@pytest.mark.peers
@pytest.mark.parametrize("seed", range(1, 4))
def test_compositions_give_what_jax_gives(seed: int) -> None:
    _compare(seed)


@pytest.mark.peers
@pytest.mark.acceptance
@pytest.mark.parametrize("first", range(0, COUNT, BATCH))
def test_many_compositions_give_what_jax_gives(first: int) -> None:
    compared = [_compare(seed) for seed in range(first, first + BATCH)]
    assert sum(compared) >= BATCH // 4


def test_compositions_are_deep_and_of_all_pairs() -> None:
    nodes = [composition(seed) for seed in range(COUNT)]
    assert all(node.depth == 4 for node in nodes)
    seen = Counter(pair for node in nodes for pair in pairs(node))
    assert min(seen[outer, inner] for outer in TRANSFORMS for inner in TRANSFORMS) >= 50
