"""Agents on sm_90a for arguments that are known: constants keep no kernel from them, are guarded, and are right."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, cast

import numpy as np
import pytest
from gpu_options import gpu
from hypothesis import given, settings
from hypothesis import strategies as st

import tessera as ts
from tessera import bf16, f16
from tessera.interpreters.core.engine import symbol_in
from tessera.interpreters.levels.tile import run_kernel
from tessera.ir.tile import dialect as tile
from tessera.stdlib import flash_attention
from tessera.targets import text
from tessera.targets.cuda.compile import compile_kernel, lower_kernel
from tessera.targets.cuda.interpreter.hopper import run_warpgroups
from tessera.targets.cuda.ir import dialect as nv
from tessera.targets.cuda.ir.hopper import ExtentOp
from tessera.targets.cuda.ptx.assembler import assemble
from tessera.transforms.core.facts import FactKind, Facts, observe

kernels: Any = import_module("warp_specialized_kernels")
Heads, Product = kernels.Heads, kernels.Product

Array = np.ndarray[Any, np.dtype[Any]]
KNOWN = (FactKind.SIZE, FactKind.STRIDE, FactKind.VALUE)


def facts_of(arguments: Sequence[Any], kinds: Sequence[FactKind] = KNOWN) -> Facts:
    given = [ts.asarray(cast("Array", one)) if isinstance(one, np.ndarray) else one for one in arguments]
    return Facts(
        atom for place, one in enumerate(given) for atom in observe({f"arg{place}": one}) if atom.kind in kinds
    )


def traced(call: Any) -> tuple[Any, str, range]:
    made = call.kernel.lower(*call.arguments, **call.static)
    return made.module, made.name, range(len(symbol_in(made.module, made.name, tile.FuncOp).arguments))


def attention(shape: tuple[int, ...], block: tuple[int, int], *, causal: bool) -> tuple[Any, Facts]:
    arguments = [*(ts.empty(shape, bf16) for _ in range(4)), 0.125]
    made = flash_attention.with_schedule(ts.Schedule(block=block)).lower(*arguments, causal=causal)
    return made, facts_of(arguments)


@pytest.mark.quick(1)
@pytest.mark.parametrize("causal", [False, True])
def test_constants_keep_agents_and_make_their_programs_shorter(causal: bool) -> None:
    made, facts = attention((4, 16, 2048, 64), (192, 128), causal=causal)
    row_aligned = range(5)
    plain, known = (
        compile_kernel(made.module, made.name, gpu(row_aligned=row_aligned), facts=one) for one in (None, facts)
    )
    assert len(known.ptx) < (0.95 if causal else 0.7) * len(plain.ptx)
    for program in (plain, known):
        assert "wgmma.mma_async" in program.ptx
        found = assemble(program.ptx, "sm_90a")
        assert not [str(remark) for remark in found.warnings if remark.slows]
        (usage,) = found.kernels.values()
        assert (usage.spill_stores, usage.spill_loads, usage.stack) == (0, 0, 0)
    assert known.grid == (11, 64)
    assert known.function is not None
    assert not any(isinstance(op, ExtentOp) for op in known.function.walk())
    # How arrays lie is the business of their tensor maps.
    assert not known.guards.of_kind(FactKind.STRIDE)
    assert {"arg0.size[0] = 4", "arg0.size[1] = 16", "arg0.size[2] = 2048", "arg4 = 0.125"} <= set(
        map(str, known.guards)
    )


def test_strides_alone_change_nothing() -> None:
    made, facts = attention((2, 2, 300, 64), (64, 64), causal=True)
    strides = Facts(facts.of_kind(FactKind.STRIDE))
    plain, known = (
        compile_kernel(made.module, made.name, gpu(row_aligned=range(5)), facts=one) for one in (None, strides)
    )
    assert plain.ptx == known.ptx
    assert not known.guards


def test_what_has_no_agents_makes_use_of_all_facts() -> None:
    made, facts = attention((2, 2, 300, 64), (64, 64), causal=True)
    known = compile_kernel(made.module, made.name, facts=facts)
    assert "wgmma" not in known.ptx
    assert known.guards.of_kind(FactKind.STRIDE)


def test_blocks_that_have_one_program_each_do_not_walk() -> None:
    made, facts = attention((1, 8, 512, 64), (64, 128), causal=True)
    plain, known = (
        symbol_in(lower_kernel(made.module, made.name, gpu(row_aligned=range(5)), facts=one)[0], made.name, nv.FuncOp)
        for one in (None, facts)
    )
    assert len(text.write(known)) < len(text.write(plain))


def run_both(call: Any, kinds: Sequence[FactKind], blocks: int, seed: int | None) -> tuple[Array, Array]:
    """What the last array is after a run: by the tile interpreter, and by that of warpgroups, with facts."""
    module, name, row_aligned = traced(call)
    outputs = symbol_in(module, name, tile.FuncOp).outputs.value.data
    given = [*call.arguments, *(np.full_like(call.arguments[0], np.nan) for _ in range(outputs))]
    plain, warps = (
        [cast("Array", one).copy() if isinstance(one, np.ndarray) else one for one in given] for _ in range(2)
    )
    run_kernel(module, name, plain)
    lowered = lower_kernel(module, name, gpu(row_aligned=row_aligned), facts=facts_of(call.arguments, kinds))[0]
    assert "nv.wgmma" in text.write(lowered)
    run_warpgroups(lowered, name, warps, blocks=blocks, seed=seed)
    return plain[-1].astype(np.float64), warps[-1].astype(np.float64)


def drawn(seed: int) -> Any:
    chance = np.random.default_rng(seed)

    def new(*shape: int, dtype: Any = f16, target: bool = False) -> Array:
        return (np.full(shape, np.nan) if target else chance.integers(-8, 9, shape) / 8).astype(dtype.storage)

    return new


@settings(max_examples=6)
@given(
    st.sampled_from(["full", "causal", "window", "prefix", "soft cap"]),
    st.sampled_from([64, 97, 128, 130]),
    st.sampled_from([70, 128, 131, 192]),  # a single turn is no loop, and has no agents
    st.sampled_from([KNOWN, (FactKind.SIZE,), (FactKind.SIZE, FactKind.VALUE)]),
    st.integers(0, 9),
)
def test_attention_means_the_same(name: str, queries: int, keys: int, kinds: Sequence[FactKind], seed: int) -> None:
    call = kernels.STAGES[name](drawn(seed), Heads(queries=queries, keys=keys, width=32, block=(64, 64)))
    expected, found = run_both(call, kinds, 1 + seed % 3, seed)
    np.testing.assert_allclose(found, expected, rtol=2.0**-9, atol=2.0**-8)


@pytest.mark.parametrize("shape", [(128, 64, 64), (131, 72, 40)])
def test_products_mean_the_same(shape: tuple[int, int, int]) -> None:
    call = kernels.PRODUCTS["a·b"](drawn(2), Product(*shape, (64, 64, 32)))
    expected, found = run_both(call, KNOWN, 2, 5)
    np.testing.assert_allclose(found, expected, rtol=2.0**-9, atol=2.0**-8)
