"""From kernels of the tile DSL to warpgroups of sm_90a: who is given to agents, that it assembles clean and is right.

`TESSERA_UPDATE_GOLDEN=1 pytest tests/targets/cuda/hopper/test_warp_specialized_chain.py -k golden` writes the golden
texts anew.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from importlib import import_module
from itertools import product
from types import CodeType, FunctionType, ModuleType
from typing import Any, cast

import numpy as np
import pytest
from gpu_options import gpu
from hypothesis import given, settings
from hypothesis import strategies as st
from ptx_checks import count
from xdsl.dialects.builtin import ModuleOp

import golden_kernels
import tessera as ts
from tessera import DType, bf16, f16
from tessera.errors import ResourceError
from tessera.interpreters.core.engine import symbol_in
from tessera.interpreters.levels.tile import run_kernel
from tessera.ir.tile import dialect as tile
from tessera.targets import text
from tessera.targets.cuda.compile import CompiledPtx, compile_kernel, lower_kernel
from tessera.targets.cuda.emit.emitter import RULES, Emitter
from tessera.targets.cuda.hopper import choose_warp_groups
from tessera.targets.cuda.hopper.choose_warp_groups import warp_group_plans
from tessera.targets.cuda.interpreter.hopper import run_warpgroups
from tessera.targets.cuda.ir import dialect as nv
from tessera.targets.cuda.ir.hopper_copies import TmaStoreOp
from tessera.targets.cuda.ir.wgmma import JoinOp
from tessera.targets.cuda.lower import multiprocessor_model
from tessera.targets.cuda.lower.legalize import legalize
from tessera.targets.cuda.ptx.assembler import Assembly, assemble
from tessera.transforms.checks.host_checks import take_host_checks

kernels: Any = import_module("warp_specialized_kernels")
PRODUCTS: dict[str, Any] = kernels.PRODUCTS
STAGES: dict[str, Any] = kernels.STAGES
Heads, Product = kernels.Heads, kernels.Product

Array = np.ndarray[Any, np.dtype[Any]]
PORTABLE = 1
"""The first rung without agents."""


def empty(dtype: DType) -> Callable[..., ts.Tensor]:
    """Makes arrays that take no memory; their rows lie well."""

    def new(*shape: int, dtype: DType = dtype, target: bool = False) -> ts.Tensor:
        return ts.empty(shape, dtype)

    return new


def traced(call: Any) -> tuple[ModuleOp, str, range]:
    made = call.kernel.lower(*call.arguments, **call.static)
    return made.module, made.name, range(len(symbol_in(made.module, made.name, tile.FuncOp).arguments))


def climbed(call: Any) -> tuple[CompiledPtx, Assembly]:
    """What a call runs in the end: agents, if their values fit the registers that they have, or else the next rung."""
    module, name, row_aligned = traced(call)
    made = compile_kernel(module, name, gpu(row_aligned=row_aligned))
    found = assemble(made.ptx, "sm_90a")
    if "wgmma" in made.ptx and found.kernels[name].stack > made.local:
        made = compile_kernel(module, name, gpu(row_aligned=row_aligned), spill_retry=PORTABLE)
        found = assemble(made.ptx, "sm_90a")
    return made, found


# Which are given to agents, and which are not

TOO_WIDE = "rings of keys and values, or the sums, have no room beside each other"
FEW_REGISTERS = "four agents have 112 registers each, and sums take too many of them"
BIAS_OF_PAIRS = "parts of a bias lie in registers beside the scores, and ten words find no room"
BIAS = "a bias of f16 is opened before it is added, for all columns"
WIDTHS = (32, 64, 80, 96, 128, 192, 256)
BLOCKS = ((64, 64), (128, 128), (192, 80), (256, 64))


def refused_stage(name: str, width: int, block: tuple[int, int]) -> str | None:
    """Why two products in a loop are not given to agents; None where they are."""
    if width > 128 and block != (64, 64):
        return TOO_WIDE
    if block == (256, 64) and width > 64:
        return FEW_REGISTERS
    if name == "bias" and (width, block) in ((64, (256, 64)), (128, (192, 80))):
        return BIAS_OF_PAIRS
    return None


def refused_product(name: str, dtype: DType, block: tuple[int, int, int]) -> str | None:
    return BIAS if name == "bias and gelu" and dtype is f16 and block[1] == 256 else None


def check(call: Any, reason: str | None) -> None:
    """Agents, or the reason; in both cases machine code as it is meant."""
    made, found = climbed(call)
    has_agents = count(made.ptx, "wgmma.mma_async") > 0
    assert has_agents == (reason is None), reason or "it has a form for agents, but is not given to them"
    assert (count(made.ptx, "mma.sync") > 0) != has_agents
    assert not [str(remark) for remark in found.warnings if remark.slows]
    (usage,) = found.kernels.values()
    assert made.messages == (), "somebody would have to wait for it"
    if has_agents:
        assert (usage.spill_stores, usage.spill_loads, usage.stack) == (0, 0, 0)
        # A thread copies for all; and with several agents, registers go to those that compute.
        assert count(made.ptx, "cp.async.bulk.tensor") > 0
        assert made.threads % 128 == 0
        assert (count(made.ptx, "setmaxnreg") == 2) == (made.threads > 256)


SIZES = {"queries": 512, "keys": 512, "heads": 2}
QUICK_STAGES = [
    ("full", 128, (128, 128)),
    ("full", 64, (256, 64)),
    ("causal", 128, (192, 80)),
    ("window", 96, (64, 64)),
    ("prefix", 80, (192, 80)),
    ("alibi", 64, (128, 128)),
    ("own score", 32, (256, 64)),
    ("soft cap", 256, (64, 64)),
    ("sigmoid", 192, (64, 64)),
    ("mlp", 128, (128, 128)),
    ("full", 96, (256, 64)),
]
QUICK_PRODUCTS = [
    ("a·b", bf16, (128, 256, 64)),
    ("a·bᵀ", f16, (128, 256, 64)),
    ("a f32 result", bf16, (192, 128, 64)),
    ("bias and gelu", bf16, (256, 128, 64)),
    ("a·b", f16, (64, 64, 32)),
]


@pytest.mark.quick(2, name=["window", "own score", "soft cap", "mlp"])
@pytest.mark.parametrize(("name", "width", "block"), QUICK_STAGES, ids=str)
def test_two_products_in_a_loop(name: str, width: int, block: tuple[int, int]) -> None:
    check(STAGES[name](empty(bf16), Heads(width=width, block=block, **SIZES)), refused_stage(name, width, block))


@pytest.mark.parametrize(("name", "dtype", "block"), QUICK_PRODUCTS, ids=str)
def test_one_product_in_a_loop(name: str, dtype: DType, block: tuple[int, int, int]) -> None:
    check(PRODUCTS[name](empty(dtype), Product(512, 512, 256, block)), refused_product(name, dtype, block))


@pytest.mark.acceptance
@pytest.mark.parametrize(("name", "width", "block"), list(product(STAGES, WIDTHS, BLOCKS)), ids=str)
def test_two_products_in_every_loop(name: str, width: int, block: tuple[int, int]) -> None:
    for dtype in (bf16, f16):
        call = STAGES[name](empty(dtype), Heads(width=width, block=block, **SIZES))
        # Without agents, there is no room for two turns, either; a call says which schedule has.
        with suppress(ResourceError) if refused_stage(name, width, block) == TOO_WIDE else nullcontext():
            check(call, refused_stage(name, width, block))


@pytest.mark.acceptance
@pytest.mark.parametrize(
    "block", [(128, 256, 64), (128, 128, 64), (64, 64, 32), (256, 128, 64), (192, 128, 64)], ids=str
)
@pytest.mark.parametrize("name", PRODUCTS)
def test_one_product_in_every_loop(name: str, block: tuple[int, int, int]) -> None:
    for dtype in (bf16, f16):
        check(PRODUCTS[name](empty(dtype), Product(512, 512, 256, block)), refused_product(name, dtype, block))


def test_arrays_that_lie_anyhow_are_not_given_to_agents() -> None:
    """A factor without a tensor map, or numbers of 32 bits: other machines' products do."""
    small = Product(512, 512, 256, (64, 64, 32))
    module, name, row_aligned = traced(PRODUCTS["a·b"](empty(bf16), small))
    for known in ([0, 2], [1, 2]):
        assert "wgmma" not in compile_kernel(module, name, gpu(row_aligned=known)).ptx
    # Rows of the result may lie anywhere: threads store it.
    assert "wgmma" in compile_kernel(module, name, gpu(row_aligned=[0, 1])).ptx
    assert "wgmma" not in compile_kernel(module, name, gpu("sm_90", row_aligned=row_aligned)).ptx
    assert "wgmma" not in compile_kernel(module, name, gpu(row_aligned=row_aligned, checks=("nan",))).ptx
    module, name, row_aligned = traced(PRODUCTS["a·b"](empty(ts.f32), small))
    assert "wgmma" not in compile_kernel(module, name, gpu(row_aligned=row_aligned)).ptx


def test_a_schedule_decides_how_many_agents_there_are() -> None:
    call = PRODUCTS["a·b"](empty(bf16), Product(512, 512, 256, (128, 128, 64)))
    module, name, row_aligned = traced(call)
    assert compile_kernel(module, name, gpu(row_aligned=row_aligned, warps=8)).threads == 128 * 3
    # Four warps are one agent, which has 64 rows: with 128 there is no such plan.
    assert "wgmma" not in compile_kernel(module, name, gpu(row_aligned=row_aligned, warps=4)).ptx


WIDE, SQUARE = (128, 256, 64), (128, 128, 64)


@pytest.mark.parametrize(
    ("m", "n", "block", "cluster", "walks"),
    [
        (8192, 14336, WIDE, 2, True),
        (8192, 8192, WIDE, 2, True),
        (8192 - 200, 8192, WIDE, 1, True),
        (4096, 4096, WIDE, 1, True),
        (512, 4096, SQUARE, 1, False),
        (16384, 16384, SQUARE, 2, True),
    ],
)
def test_blocks_fetch_together_where_there_are_many_programs(
    m: int, n: int, block: tuple[int, int, int], cluster: int, walks: bool
) -> None:
    """An H200 found clusters faster for the first two, and slower for 4096³ and 512×4096; 63 rows have no pairs."""
    module, name, row_aligned = traced(PRODUCTS["a·b"](empty(bf16), Product(m, n, 4096, block)))
    function = symbol_in(module, name, tile.FuncOp)
    take_host_checks(function)
    legalize(function, contract=True, arch="sm_90a")
    plan = next(warp_group_plans(function, None, None, row_aligned))
    assert (plan.cluster, plan.walks) == (cluster, walks)
    lowered = symbol_in(lower_kernel(module, name, gpu(row_aligned=row_aligned))[0], name, nv.FuncOp)
    assert ("cluster" in lowered.attributes) == (cluster > 1)
    # With several programs, the last store is another one than those in the loop.
    stores = [op for op in lowered.walk() if isinstance(op, TmaStoreOp)]
    assert len(stores) == (2 if walks else 1) * block[1] // 64


@pytest.mark.acceptance
def test_clusters_assemble_clean() -> None:
    for name in ("a·b", "a·bᵀ", "bias and gelu", "a f32 result"):
        call = PRODUCTS[name](empty(bf16), Product(8192, 14336, 4096, WIDE))
        made, found = climbed(call)
        assert ".multicast::cluster" in made.ptx
        assert not [str(remark) for remark in found.warnings if remark.slows]
        (usage,) = found.kernels.values()
        assert (usage.spill_stores, usage.spill_loads, usage.stack) == (0, 0, 0)


def test_memory_beside_sums_is_read_in_pieces() -> None:
    """64 columns at a time, or there would not be registers enough; without such memory nothing is cut."""
    for name, pieces in (("another matrix", 4), ("a·b", 0), ("bias and gelu", 0)):
        for columns in (256, 128, 64):
            module, symbol, row_aligned = traced(
                PRODUCTS[name](empty(bf16), Product(4096, 4096, 256, (128, columns, 64)))
            )
            lowered = symbol_in(lower_kernel(module, symbol, gpu(row_aligned=row_aligned))[0], symbol, nv.FuncOp)
            joins = [op for op in lowered.walk() if isinstance(op, JoinOp)]
            cut = bool(pieces) and columns > 64
            assert [len(op.pieces) for op in joins] == ([columns // 64] if cut else [])


# What it means


def drawn(dtype: DType, seed: int) -> Callable[..., Array]:
    """Makes arrays of few digits: scores are exact, and sums of products nearly so."""
    chance = np.random.default_rng(seed)

    def new(*shape: int, dtype: DType = dtype, target: bool = False) -> Array:
        values = np.full(shape, np.nan) if target else chance.integers(-8, 9, shape) / 8
        return values.astype(dtype.storage)

    return new


def copies(given: Sequence[Any]) -> list[Any]:
    return [cast("Array", value).copy() if isinstance(value, np.ndarray) else value for value in given]


def run_both(call: Any, blocks: int, seed: int | None) -> tuple[Array, Array]:
    """What the last array is after a run: by the tile interpreter, and by that of warpgroups."""
    module, name, row_aligned = traced(call)
    function = symbol_in(module, name, tile.FuncOp)
    outputs = function.outputs.value.data
    given = [*call.arguments, *(np.full_like(call.arguments[0], np.nan) for _ in range(outputs))]
    plain, warps = (copies(given) for _ in range(2))
    run_kernel(module, name, plain)
    lowered = lower_kernel(module, name, gpu(row_aligned=row_aligned))[0]
    assert "nv.wgmma" in text.write(lowered)
    run_warpgroups(lowered, name, warps, blocks=blocks, seed=seed)
    return plain[-1].astype(np.float64), warps[-1].astype(np.float64)


def expect_close(expected: Array, found: Array, dtype: DType) -> None:
    """Exponentials and roundings of weights may differ by a digit; nothing is left out."""
    assert np.isfinite(expected).all()
    tolerance = {bf16: 2.0**-7, f16: 2.0**-9, ts.f32: 2.0**-9}[dtype]
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=2 * tolerance)


@pytest.mark.quick(name=["full", "window", "own score", "sigmoid", "mlp"])
@pytest.mark.parametrize("name", STAGES)
def test_attention_means_the_same(name: str) -> None:
    """More queries than a block has, keys that end in the middle of one; agents take turns by chance."""
    call = STAGES[name](drawn(f16, 1), Heads(queries=97, keys=130, width=32, block=(64, 64)))
    expect_close(*run_both(call, 2, 3), f16)


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_mean_the_same(name: str) -> None:
    call = PRODUCTS[name](drawn(bf16, 2), Product(131, 72, 40, (128, 64, 32)))
    expect_close(*run_both(call, 2, 5), bf16)


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize(("shape", "block"), [((200, 136, 72), (64, 64, 32)), ((400, 264, 40), (128, 128, 64))])
def test_clusters_mean_the_same(
    name: str, shape: tuple[int, int, int], block: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(multiprocessor_model, "CLUSTER_START", 0)
    monkeypatch.setattr(choose_warp_groups, "AT_ONCE", 1)
    call = PRODUCTS[name](drawn(bf16, 3), Product(*shape, block))
    module, symbol, row_aligned = traced(call)
    assert "nv.cluster_sync" in text.write(lower_kernel(module, symbol, gpu(row_aligned=row_aligned))[0])
    for blocks, seed in ((2, None), (4, 6)):
        expect_close(*run_both(call, blocks, seed), bf16)


@settings(max_examples=8)
@given(
    st.sampled_from(sorted(STAGES)),
    st.integers(1, 140),
    st.integers(1, 140),
    st.sampled_from([(64, 64), (128, 32), (64, 80)]),
    st.sampled_from([32, 64]),
    st.integers(0, 9),
)
def test_odd_sizes(name: str, queries: int, keys: int, block: tuple[int, int], width: int, seed: int) -> None:
    # A tensor map has rows of 16 bytes; of the hidden units of an mlp, too.
    keys = -(-keys // 8) * 8 if name == "mlp" else keys
    call = STAGES[name](drawn(f16, seed), Heads(queries, keys, width, block))
    expect_close(*run_both(call, 1 + seed % 3, seed), f16)


@settings(max_examples=8)
@given(
    st.sampled_from(sorted(PRODUCTS)), st.integers(1, 150), st.integers(1, 12), st.integers(0, 12), st.integers(0, 9)
)
def test_odd_products(name: str, m: int, n: int, k: int, seed: int) -> None:
    call = PRODUCTS[name](drawn(bf16, seed), Product(m, 8 * n, 8 * k, (64, 64, 32)))
    expect_close(*run_both(call, 1 + seed % 3, seed), bf16)


# Golden texts

FOLDER = golden_kernels.FOLDER / "chain"
GOLDEN: dict[str, Callable[[], Any]] = {
    "gemm": lambda: PRODUCTS["a·b"](empty(bf16), Product(4096, 4096, 4096, (128, 256, 64))),
    "attention_causal_128": lambda: STAGES["causal"](empty(bf16), Heads(4096, 4096, 128, (192, 80), 64)),
}


@pytest.mark.quick(1)
@pytest.mark.parametrize("name", GOLDEN)
def test_the_chain_writes_the_golden_text(name: str) -> None:
    module, symbol, row_aligned = traced(GOLDEN[name]())
    lowered = lower_kernel(module, symbol, gpu(row_aligned=row_aligned))[0]
    written, path = text.write(lowered), FOLDER / f"{name}.nv"
    if os.environ.get("TESSERA_UPDATE_GOLDEN"):
        path.write_text(written, "utf-8")
    golden = path.read_text("utf-8")
    # Names of values may differ.
    same = text.structural_hash(text.read(golden)) == text.structural_hash(text.read(written))
    lines = difflib.unified_diff(golden.splitlines(), written.splitlines(), f"{name}.nv", "the chain", lineterm="", n=1)
    assert same, "\n".join(lines)


def test_every_golden_text_has_a_kernel() -> None:
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted(f"{name}.nv" for name in GOLDEN)


# No rule knows two things

DOT = re.compile(r"mma\.sync|wgmma\.mma_async")
EXPONENTIAL = re.compile(r"\bex2\.|llvm\.exp")


def parts_of(thing: Any) -> Iterator[Any]:
    """What a function may run or say: those that its code names, closures, and what stands in tables and classes."""
    if isinstance(thing, FunctionType):
        codes = [thing.__code__]
        while codes:
            code = codes.pop()
            codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
            yield from (constant for constant in code.co_consts if isinstance(constant, str))
            # Modules are followed only to what is named as well.
            found = [thing.__globals__.get(name) for name in code.co_names]
            yield from found
            yield from (vars(one).get(name) for one in found if isinstance(one, ModuleType) for name in code.co_names)
        yield from (cell.cell_contents for cell in thing.__closure__ or ())
    elif isinstance(thing, partial):
        yield thing.func
        yield from thing.args
    elif isinstance(thing, type):
        yield from (value for value in vars(thing).values() if isinstance(value, FunctionType | property))
    elif isinstance(thing, property):
        yield thing.fget
    elif isinstance(thing, Mapping):
        yield from thing.values()
    elif isinstance(thing, tuple | list):
        yield from thing


def said_by(rule: Any) -> set[str]:
    """All texts that an op's rule may write, wherever in the targets they stand."""
    said, seen, pending = set[str](), set[int](), [rule]
    while pending:
        thing = pending.pop()
        if isinstance(thing, str):
            said.add(thing)
        home = getattr(thing, "__module__", None)
        ours = home is None or not isinstance(home, str) or home.startswith("tessera.targets")
        if id(thing) not in seen and ours and thing is not RULES and thing is not Emitter:
            seen.add(id(thing))
            pending += list(parts_of(thing))
    return said


def test_no_rule_writes_both_a_product_and_an_exponential() -> None:
    """Whatever is between products is made of ops of its own."""
    products, exponentials = set[str](), set[str]()
    for kind, rule in RULES.items():
        said = said_by(rule)
        products |= {kind.name} if any(DOT.search(one) for one in said) else set()
        exponentials |= {kind.name} if any(EXPONENTIAL.search(one) for one in said) else set()
    assert products == {"nv.mma", "nv.wgmma"}
    assert "tile.ew" in exponentials
    assert not products & exponentials
