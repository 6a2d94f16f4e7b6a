"""Warp-specialized kernels: kernels as people write them, and runs in many orders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any, cast

import numpy as np
from rewritten_programs import Array, Rewrite, read, rewritten, run
from xdsl.dialects.builtin import ModuleOp, StringAttr

from tessera import Schedule, stdlib
from tessera.interpreters.core.machine import Machine
from tessera.interpreters.levels.tile import run_kernel
from tessera.ir.tile import dialect as tile
from tessera.targets import text
from tessera.targets.cuda.lower.legalize import legalize
from tessera.transforms.checks.host_checks import take_host_checks
from tessera.transforms.loops.live_iterations import clip_ranges

lib: Any = import_module("library")

Made = tuple[ModuleOp, list[Any]]
ROWS, BLOCK, DEPTH = 24, 8, 16


def traced(kernel: Any, given: list[Any], **static: Any) -> Made:
    """A kernel as a tile function @k, and its arguments."""
    module = kernel.with_schedule(Schedule(block=(ROWS, BLOCK, DEPTH))).lower(*given, **static).module.clone()
    function = next(op for op in module.body.block.ops if isinstance(op, tile.FuncOp))
    function.properties["sym_name"] = StringAttr("k")
    return module, [*given, *(np.zeros_like(given[0]) for _ in range(function.outputs.value.data))]


def numbers(*shape: int) -> Any:
    """Few digits, so that accumulators are the same in every order."""
    found = np.random.default_rng(sum(shape)).integers(-8, 9, shape)
    return (found / 8).astype(np.float16)


def attention(kernel: Any, *others: Any, heads: int = 2, **static: Any) -> Callable[[int], Made]:
    def make(keys: int) -> Made:
        q, k, v = numbers(2, 53, DEPTH), numbers(heads, keys, DEPTH), numbers(heads, keys, DEPTH)
        return traced(kernel, [q, k, v, *others], **static)

    return make


def matmul(kernel: Any, *others: Any, **static: Any) -> Callable[[int], Made]:
    def make(depth: int) -> Made:
        return traced(kernel[3, 3], [numbers(53, depth), numbers(depth, 21), *others, numbers(53, 21)], **static)

    return make


def hidden(kernel: Any) -> Callable[[int], Made]:
    def make(units: int) -> Made:
        return traced(kernel, [numbers(53, DEPTH), numbers(DEPTH, units), numbers(units, DEPTH)])

    return make


MATMULS: dict[str, Callable[[int], Made]] = {
    "gemm": matmul(stdlib.gemm),
    "gemm and more": matmul(lib.gemm, numbers(21), epilogue=lib.gelu),
}
STAGES: dict[str, Callable[[int], Made]] = {
    "full": attention(stdlib.attention),
    "causal": attention(stdlib.attention, mask=stdlib.causal),
    "grouped queries": attention(stdlib.attention, heads=1, mask=stdlib.causal),
    "window": attention(stdlib.window_attention, 11),
    "prefix": attention(stdlib.prefix_attention, 5),
    "alibi": attention(lib.alibi_attention, numbers(2)),
    "soft cap": attention(lib.softcap_attention, cap=3.0),
    "sigmoid": attention(stdlib.sigmoid_attention, 0.5),
    "mlp": hidden(stdlib.mlp),
    "another mlp": hidden(lib.mlp),
}
KERNELS = {**MATMULS, **STAGES}
LENGTHS = (0, 1, BLOCK, 41)


def prepared(function: tile.FuncOp) -> None:
    """Runs the passes in front of warp specialization."""
    take_host_checks(function)
    legalize(function, contract=True)
    clip_ranges(function)


def machines(seeds: int = 2) -> Iterable[Machine]:
    """One CTA for all program instances, some, and one for each; warp groups run in a fixed order, or by chance."""
    yield Machine(ctas=1)
    yield Machine(ctas=100)
    yield from (Machine(ctas=2 + seed, chance=np.random.default_rng(seed)) for seed in range(seeds))


def check_partitions(
    source: str | ModuleOp, rewrite: Rewrite, arguments: Sequence[Any], worlds: Iterable[Machine] | None = None
) -> tile.FuncOp:
    """Compares the bits that a kernel gives before it is warp-specialized and after, in many orders."""
    before = read(source) if isinstance(source, str) else source
    after, function, _ = rewritten(before, rewrite)
    assert "persistent" in function.attributes, "it has no partitions"
    wanted = run(before, arguments)
    for machine in machines() if worlds is None else worlds:
        given = [cast("Array", value).copy() if isinstance(value, np.ndarray) else value for value in arguments]
        run_kernel(after, "k", given, machine=machine)
        found = [cast("Array", value) for value in given if isinstance(value, np.ndarray)]
        for one, other in zip(found, wanted, strict=True):
            assert one.tobytes() == other.tobytes(), text.write(after)
    return function
