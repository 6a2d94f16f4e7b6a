"""Graph functions become few kernels that mean the same: at the tile level, and on both targets' interpreters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from cpu_runs import to_cpu
from gpu_options import gpu
from graph_models import (
    Array,
    Build,
    arguments,
    column_sums,
    cross_entropy,
    embedding,
    gelu_gate,
    heads_merged,
    layernorm,
    rmsnorm,
    rope,
    softmax,
    transposed_sum,
)
from hypothesis import given, settings
from random_graphs import Program, programs
from rewritten_programs import at_length
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from tessera.dtypes.types import DType, bf16, f16, f32, f64, i8, i32, i64, u8, u32
from tessera.interpreters.levels import graph as graph_interpreter
from tessera.interpreters.levels.graph import run_function
from tessera.interpreters.levels.tile import run_kernel
from tessera.interpreters.sanitizers.checks import Checks, checking
from tessera.ir import text as dialects_text
from tessera.ir.common.schedule_attributes import Config, ConfigAttr
from tessera.ir.graph import dialect as graph
from tessera.ir.graph.effects import PrintOp
from tessera.ir.graph.indexing import CumulateOp, DynamicSliceOp, DynamicUpdateSliceOp, ScatterOp
from tessera.ir.graph.slices import LEAST, least_sizes
from tessera.ir.graph.types import GraphTensorType, graph_type
from tessera.ir.schedule import dialect as schedule
from tessera.ir.tile import dialect as tile
from tessera.targets import text as targets_text
from tessera.targets.cpu.interpreter import run_cpu_kernel
from tessera.targets.cpu.lower.tile_to_cpu import TileToCpu
from tessera.targets.cuda.compile import compile_kernel, lower_kernel
from tessera.targets.cuda.interpreter.nv import run_nv_kernel
from tessera.targets.cuda.ptx.assembler import assemble
from tessera.transforms.core.context import CompileContext
from tessera.transforms.fusion.graph_to_schedule import GraphToSchedule
from tessera.transforms.fusion.region_spaces import UnfitError, space_of
from tessera.transforms.fusion.regions import enclosable, enclose
from tessera.transforms.fusion.schedule_to_tile import ScheduleToTile
from tessera.transforms.pipeline import compile_module

SIZES = {"M": 13, "N": 40, "B": 2, "S": 5, "V": 7}
BOUNDS = {f64: 1e-12, f32: 2e-6, f16: 5e-4, bf16: 4e-3}

MODELS = {
    "softmax": partial(softmax, "M", 40),
    "softmax of any length": partial(softmax, "M", "N"),
    "softmax of columns": partial(softmax, "M", 40, axis=0),
    "softmax in bf16": partial(softmax, "M", 40, bf16),
    "layernorm and residual": partial(layernorm, "M", 40),
    "layernorm and residual in f16": partial(layernorm, "M", 40, f16),
    "rmsnorm": partial(rmsnorm, "M", 40, bf16),
    "gelu": partial(gelu_gate, "M", "N"),
    "transpose and add": partial(transposed_sum, "M", "N"),
    "rope": partial(rope, "B", "S", 3, 8),
    "cross entropy": partial(cross_entropy, "M", 40),
    "embedding": partial(embedding, "M", 40, "V"),
    "heads": partial(heads_merged, "B", "S", 3, 8),
    "sums of columns": partial(column_sums, "M", "N"),
}


def kernels(module: ModuleOp) -> list[tile.FuncOp]:
    return [op for op in module.body.block.ops if isinstance(op, tile.FuncOp)]


def assert_close(found: Sequence[Array], expected: Sequence[Array], dtypes: Sequence[DType]) -> None:
    for one, other, dtype in zip(found, expected, dtypes, strict=True):
        assert one.shape == other.shape
        finite = np.isfinite(np.asarray(other, np.float64)) if dtype.is_float else np.zeros(other.shape, np.bool_)
        assert (one[~finite] == other[~finite]).all()
        wide = np.asarray(other[finite], np.float64)
        error = np.linalg.norm(np.asarray(one[finite], np.float64) - wide)
        assert error <= BOUNDS.get(dtype, 0) * max(np.linalg.norm(wide), 1.0), error


def dtypes_of(module: ModuleOp) -> list[DType]:
    function = next(op for op in module.body.block.ops if isinstance(op, graph.FuncOp))
    end = function.body.block.last_op
    assert end is not None
    return [graph_type(value).dtype for value in end.operands]


def check(module: ModuleOp, sizes: dict[str, int] = SIZES, **options: Any) -> int:
    """Compares a graph with its tile programs; gives how many there are."""
    dialects_text.verify(module)
    given = arguments(module, sizes, **options)
    compiled = compile_module(module)
    assert_close(run_function(compiled.module, "f", given), run_function(module, "f", given), dtypes_of(module))
    return sum(isinstance(op, schedule.LaunchOp) for op in compiled.module.walk())


@pytest.mark.parametrize("name", MODELS)
def test_what_belongs_together_is_one_kernel(name: str) -> None:
    assert check(MODELS[name]()) == 1


@pytest.mark.parametrize("rows", [0, 1, 64])
def test_any_number_of_rows(rows: int) -> None:
    for name in ("softmax", "layernorm and residual", "sums of columns", "cross entropy"):
        assert check(MODELS[name](), {**SIZES, "M": rows}) == 1


def test_rows_longer_than_a_block_are_read_in_loops() -> None:
    for module in (softmax("M", 20000), softmax("M", "N"), softmax("N", 40, axis=0)):
        assert check(module, {"M": 2, "N": 2500}) == 1


def _reduction(kind: str, axes: Sequence[int], dtype: DType, *, keepdims: bool = False) -> ModuleOp:
    build = Build([["M", 6, "N"]], [dtype])
    return build.finish(build.add(graph.ReduceOp(kind, build.args[0], axes, keepdims=keepdims)))


@pytest.mark.parametrize("axes", [[0], [1], [2], [0, 1], [1, 2], [0, 2], [0, 1, 2]], ids=str)
def test_reductions_of_any_axes(axes: list[int]) -> None:
    for keepdims in (False, True):
        check(_reduction("sum", axes, f32, keepdims=keepdims))


@pytest.mark.parametrize("kind", ["sum", "prod", "max", "min", "and", "or", "xor"])
def test_reductions_of_any_kind(kind: str) -> None:
    for dtype in (i8, u32) if kind in ("and", "or", "xor") else (bf16, f64, i8, u8):
        check(_reduction(kind, [2], dtype))
        check(_reduction(kind, [0], dtype), {"M": 0, "N": 3})


def test_a_reduction_for_all_rows_is_not_done_for_each() -> None:
    build = Build([["M", "N"]], [f32])
    (x,) = build.args
    total = build.add(graph.ReduceOp("sum", x, [0, 1], keepdims=True))
    assert check(build.finish(build.ew("div", x, total))) == 3


@pytest.mark.parametrize("length", [40, "N"])
def test_reductions_of_one_element_stand_beside_others(length: int | str) -> None:
    """They fold nothing: not the rows of the region, either."""
    build = Build([["M", length], ["M", 1]], [f32, f32])
    x, narrow = build.args
    single = build.ew("mul", build.reduce("sum", narrow), 0.5)
    shifted = build.ew("add", x, single)
    top = build.reduce("max", shifted)
    again = build.reduce("sum", build.ew("exp", top))
    module = build.finish(build.ew("sub", build.ew("mul", shifted, again), top), top)
    changed = module.clone()
    GraphToSchedule().apply(CompileContext.with_facts(), changed)
    assert sum(isinstance(op, graph.ReduceOp) for op in changed.walk()) == 3
    ScheduleToTile().apply(CompileContext.with_facts(), changed)
    assert len(kernels(changed)) == 1
    given = arguments(module, SIZES)
    assert_close(run_function(changed, "f", given), run_function(module, "f", given), dtypes_of(module))
    assert check(module) == 1  # where they are gone beforehand


def test_reductions_of_axes_of_other_lengths_are_not_one_kernel() -> None:
    build = Build([["M", 40], ["M", 8]], [f32, f32])
    wide, narrow = (build.reduce("sum", value) for value in build.args)
    assert (
        check(
            build.finish(
                build.ew("mul", build.args[0], wide),
                build.ew("mul", build.args[1], narrow),
                build.ew("add", wide, narrow),
            )
        )
        > 1
    )


def test_what_is_looked_up_and_folded_has_its_place_by_what_is_folded() -> None:
    whole, top, bits = (
        f"!graph.tensor<[4, {size}, 6], {dtype}>" for size, dtype in ((2, "i32"), (1, "i32"), (2, "i1"))
    )
    places, looked = "!graph.tensor<[8, 6], i64>", "!graph.tensor<[8, 6], i32>"
    module = dialects_text.read(f"""
graph.func @f(%x: {whole}, %at: {places}) -> ({bits}) {{
  %y = schedule.region<rows> <block = [1, 6, 2]> (%a : {whole} = %x, %p : {places} = %at) -> ({bits}) {{
    %line = graph.reshape %a : {whole} -> !graph.tensor<[48], i32>
    %found = graph.gather %line[%p], [0] : !graph.tensor<[48], i32>, {places} -> {looked}
    %shaped = graph.reshape %found : {looked} -> {whole}
    %top = graph.reduce<max> %a, [1] keepdims : {whole} -> {top}
    %tops = graph.broadcast %top : {top} -> {whole}
    %sum = graph.ew<add> %a, %tops : {whole}, {whole} -> {whole}
    %low = graph.reduce<min> %sum, [1] keepdims : {whole} -> {top}
    %lows = graph.broadcast %low : {top} -> {whole}
    %less = graph.ew<lt> %shaped, %lows : {whole}, {whole} -> {bits}
    schedule.yield %less : {bits}
  }}
  graph.return %y : {bits}
}}""")
    rng = np.random.default_rng(0)
    given = [rng.integers(-9, 9, (4, 2, 6)).astype(np.int32), rng.permutation(48).reshape(8, 6)]
    changed = module.clone()
    ScheduleToTile().apply(CompileContext.with_facts(), changed)
    assert_close(run_function(changed, "f", given), run_function(module, "f", given), [i32])


def test_a_result_whose_tiles_are_no_boxes_is_made_by_another_kernel() -> None:
    build = Build([["M", 2, 3]], [f32])
    grown = build.ew("exp", build.args[0])
    regrouped = build.add(graph.ReshapeOp(grown, ["M", 3, 2]))
    top = build.add(graph.ReduceOp("max", regrouped, [1], keepdims=True))
    assert check(build.finish(grown, build.ew("sub", regrouped, top))) == 2


def test_a_region_goes_through_all_of_its_results() -> None:
    build = Build([["M + 1"]], [f32])
    grown = build.ew("exp", build.args[0])
    part = build.add(graph.SliceOp(grown, [0], [-1], [1]))
    assert isinstance(part.owner, Operation)
    assert isinstance(grown.owner, Operation)
    with pytest.raises(UnfitError, match="goes through a part"):
        space_of([grown.owner, part.owner], [part, grown])


@pytest.mark.parametrize(
    ("length", "least", "kernels"), [(0, 0, 2), (1, 0, 2), (65, 0, 2), (1, 1, 1), (65, 1, 1)], ids=str
)
def test_a_result_is_made_where_wider_ones_have_no_elements(length: int, least: int, kernels: int) -> None:
    build = Build([["M", "N"], ["M", 1]], [f32, f32])
    grown = build.ew("exp", build.args[1])
    module = build.finish(build.ew("add", build.args[0], grown), grown)
    if (told := least_sizes({"N": (least, None)})) is not None:
        function = module.body.block.first_op
        assert function is not None
        function.attributes[LEAST] = told
    assert check(module, {"M": 5, "N": length}) == kernels


def test_a_value_that_others_use_is_a_second_result() -> None:
    build = Build([["M", 40], [40, 8]], [f32, f32])
    grown = build.ew("exp", build.args[0])
    shares = build.ew("div", grown, build.reduce("sum", grown))
    module = build.finish(shares, grown)
    assert check(module) == 1


def test_constants_of_any_type_are_made_in_kernels() -> None:
    for dtype in (f64, f16, i8, u8, u32, i64):
        build = Build([["M", "N"]], [dtype])
        assert check(build.finish(build.ew("add", build.args[0], 7))) == 1


def _scattered(kind: str, axis: int, build: Build) -> ScatterOp:
    operand, indices, updates = build.args
    return ScatterOp(kind, operand, updates, [indices], [axis])


def _steps() -> dict[str, ModuleOp]:
    found: dict[str, ModuleOp] = {}

    def one(
        name: str, shapes: Sequence[Sequence[int | str]], dtypes: Sequence[DType], make: Callable[[Build], Operation]
    ) -> None:
        build = Build(shapes, dtypes)
        found[name] = build.finish(build.add(make(build)))

    one("sums", [["M", "N"]], [f32], lambda b: CumulateOp("sum", b.args[0], 0))
    one("maxima before", [["M", "N"]], [f32], lambda b: CumulateOp("max", b.args[0], 1, exclusive=True))
    one("sums of bf16", [["B", "S", 4]], [bf16], lambda b: CumulateOp("sum", b.args[0], 1))
    one("products", [["M"]], [i8], lambda b: CumulateOp("prod", b.args[0], 0))
    one("rows added", [["V", 6], ["M"], ["M", 6]], [f32, i32, f32], partial(_scattered, "add", 0))
    one("last wins", [["B", "S", 6], ["N"], ["B", "N", 6]], [f32, i64, f32], partial(_scattered, "set", 1))
    one("numbers", [["V"], [2, 3], [2, 3]], [f32, i32, f32], partial(_scattered, "max", 0))

    def into_zeros(build: Build) -> ScatterOp:
        zeros = build.add(graph.ConstantOp.splat(0.0, GraphTensorType.of(["V", 6], f32)))
        return ScatterOp("add", zeros, build.args[2], [build.args[1]], [0])

    one("into zeros", [["V", 6], ["M"], ["M", 6]], [f32, i32, f32], into_zeros)
    one("along rows", [["M", "N"], ["M", 3]], [f32, i64], _along_rows)
    one(
        "two numbers",
        [["V", 6, "S"], [3], [3]],
        [f32, i64, i64],
        lambda b: graph.GatherOp(b.args[0], b.args[1:], [0, 2]),
    )
    one("factors at two", [["V", 6, "S"], [3, 6], [3], [3]], [f32, f32, i64, i64], _scattered_at_two)
    for start in (i32, u32):
        one(f"slice at {start}", [["M", "N"], [], []], [f32, start, start], _slice)
        one(f"update at {start}", [["B", "S", 6], ["B", 2, 6], [], [], []], [f32, f32, start, start, start], _update)
    return found


def _along_rows(build: Build) -> graph.GatherOp:
    rows = build.add(graph.IotaOp(0, GraphTensorType.of(["M", 3], i64)))
    return graph.GatherOp(build.args[0], [rows, build.args[1]], [0, 1])


def _scattered_at_two(build: Build) -> ScatterOp:
    operand, updates, *indices = build.args
    return ScatterOp("mul", operand, updates, indices, [0, 2])


def _slice(build: Build) -> DynamicSliceOp:
    return DynamicSliceOp(build.args[0], build.args[1:], [3, "N"])


def _update(build: Build) -> DynamicUpdateSliceOp:
    return DynamicUpdateSliceOp(build.args[0], build.args[1], build.args[2:])


STEPS = _steps()


@pytest.mark.parametrize("name", STEPS)
def test_steps_and_places(name: str) -> None:
    assert check(STEPS[name]) == 1
    assert check(STEPS[name], seed=1, most=5) == 1


def test_starts_are_moved_inside() -> None:
    build = Build([[7], []], [f32, i32])
    module = build.finish(build.add(DynamicSliceOp(build.args[0], build.args[1:], [3])))
    compiled = compile_module(module)
    x = np.arange(7, dtype=np.float32)
    for start, first in ((-5, 0), (2, 2), (100, 4)):
        for one in (module, compiled.module):
            (found,) = run_function(one, "f", [x, np.array(start, np.int32)])
            assert found.tolist() == [first, first + 1, first + 2]


def test_an_index_outside_reads_as_nothing() -> None:
    compiled = compile_module(embedding("M", 4, "V"))
    (found,) = run_function(compiled.module, "f", [np.ones((3, 4), np.float32), np.array([-1, 2, 3], np.int32)])
    assert found.sum(1).tolist() == [0, 4, 0]


# Both targets


def _by(target: str, module: ModuleOp, given: Sequence[Array], monkeypatch: pytest.MonkeyPatch) -> Sequence[Array]:
    """What a lowered graph gives if its kernels run on a target's interpreter."""
    made: dict[str, ModuleOp] = {}
    for kernel in kernels(module):
        alone, name = ModuleOp([kernel.clone()]), kernel.sym_name.data
        if target == "cpu":
            to_cpu(alone, TileToCpu("avx2"))
            made[name] = alone
        else:
            made[name] = lower_kernel(alone, name)[0]
        targets_text.verify(made[name])

    def run(_: ModuleOp, name: str, arrays: Sequence[Any], machine: object = None, *, covered: bool = False) -> None:
        (run_cpu_kernel if target == "cpu" else run_nv_kernel)(made[name], name, arrays)

    monkeypatch.setattr(graph_interpreter, run_kernel.__name__, run)
    return run_function(module, "f", given)


ON_TARGETS = {**{name: make() for name, make in MODELS.items()}, **STEPS}


@pytest.mark.parametrize("target", ["cpu", "cuda"])
@pytest.mark.parametrize(
    "name", at_length(ON_TARGETS, "softmax of any length", "rope", "embedding", "rows added", "update at u32")
)
def test_targets_give_the_same(name: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ON_TARGETS[name]
    given = arguments(module, SIZES)
    expected = run_function(module, "f", given)
    assert_close(_by(target, compile_module(module).module, given, monkeypatch), expected, dtypes_of(module))


LARGE = {
    "softmax": partial(softmax, "M", 1024, bf16),
    "softmax of any length": partial(softmax, "M", "N", bf16),
    "layernorm": partial(layernorm, "M", 4096, bf16),
    "transpose": partial(transposed_sum, "M", "N", bf16),
    "rope": partial(rope, "B", "S", 16, 64, bf16),
    "cross entropy": partial(cross_entropy, "M", 32000, bf16),
    "embedding": partial(embedding, "M", 1024, "V", bf16),
    "long rows": partial(softmax, "M", 16384),
    "softmax of columns": partial(softmax, "M", 1024, axis=0),
    "sums of columns": partial(column_sums, "M", "N"),
    **{name: lambda name=name: STEPS[name] for name in STEPS},
}


@pytest.mark.parametrize("name", at_length(LARGE, "softmax of any length", "rope", "rows added"))
def test_ptx_assembles_without_spills(name: str) -> None:
    for kernel in kernels(compile_module(LARGE[name]()).module):
        program = compile_kernel(ModuleOp([kernel.clone()]), kernel.sym_name.data, gpu())
        for usage in assemble(program.ptx, "sm_90a").kernels.values():
            assert (usage.stack, usage.spill_stores, usage.spill_loads) == (0, 0, 0)


# Configs


@pytest.mark.parametrize("block", [(4, 16), (16, 8), (3, 40), (1, 64)], ids=str)
def test_any_block_gives_the_same(block: tuple[int, int]) -> None:
    for make in (MODELS["softmax of any length"], MODELS["softmax of columns"], MODELS["gelu"]):
        module = make()
        given = arguments(module, SIZES)
        changed = module.clone()
        GraphToSchedule().apply(CompileContext.with_facts(), changed)
        for op in changed.walk():
            if isinstance(op, schedule.RegionOp):
                op.properties["config"] = ConfigAttr(Config(block=block))
        ScheduleToTile().apply(CompileContext.with_facts(), changed)
        dialects_text.verify(changed)
        assert_close(run_function(changed, "f", given), run_function(module, "f", given), dtypes_of(module))


# Regions


def test_ops_around_an_effect_are_one_region_if_it_can_stand_behind() -> None:
    build = Build([["M"]], [f32])
    first = build.ew("exp", build.args[0])
    shown = PrintOp("first", first)
    build.function.body.block.add_op(shown)
    second = build.ew("neg", first)
    build.finish(second)
    ops = [value.owner for value in (first, second) if isinstance(value.owner, graph.EwOp)]
    assert enclosable(ops)
    region = enclose(ops, "pointwise", Config(block=(4,)))
    assert [type(op) for op in region.body.block.ops] == [graph.EwOp, graph.EwOp, schedule.YieldOp]
    assert len(region.results_) == 2
    assert region.next_op is shown


def test_what_goes_out_and_comes_back_is_not_one_region() -> None:
    build = Build([["M", 8], [8, 8]], [f32, f32])
    first = build.ew("exp", build.args[0])
    product = build.add(graph.MatmulOp(first, build.args[1]))
    second = build.ew("add", first, product)
    build.finish(second)
    ops = [value.owner for value in (first, second) if isinstance(value.owner, graph.EwOp)]
    assert not enclosable(ops)


def test_copied_ops_stay_where_others_use_them() -> None:
    build = Build([["M"]], [f32])
    shared = build.ew("neg", build.args[0])
    user: SSAValue = build.ew("exp", shared)
    build.finish(user, shared)
    owners = [value.owner for value in (shared, user)]
    copy, op = (owner for owner in owners if isinstance(owner, graph.EwOp))
    region = enclose([op], "pointwise", Config(), copied=[copy])
    assert copy.parent is region.parent
    assert len(region.results_) == 1
    assert [value.owner for value in region.arguments] == [region.parent]


@settings(max_examples=25)
@given(programs())
def test_random_programs(program: Program) -> None:
    module = program.finish(2)
    dialects_text.verify(module)
    given_arrays = program.arguments(1)
    compiled = compile_module(module)
    found, expected = run_function(compiled.module, "f", given_arrays), run_function(module, "f", given_arrays)
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        assert np.allclose(one, other, rtol=1e-4, atol=1e-4)


def test_a_reduction_of_all_is_divided() -> None:
    for dtype in (f32, bf16, i8):
        build = Build([["M", "N"]], [dtype])
        assert check(build.finish(build.add(graph.ReduceOp("sum", build.args[0], [0, 1])))) == 2


def test_accesses_that_are_open_on_purpose_pass_the_check_of_bounds() -> None:
    build = Build([["M", 4], ["M", 4]], [f32, f32])
    module = build.finish(build.add(graph.ConcatenateOp(build.args, 1)))
    given, compiled = arguments(module, SIZES), compile_module(module)
    with checking(Checks(bounds=True)):
        (found,) = run_function(compiled.module, "f", given)
    assert (found == np.concatenate(given, 1)).all()


@pytest.mark.parametrize(("shape", "axis"), [((4096, 1024), 0), ((2, 1 << 20), 1), ((3, 1 << 20), 1)])
def test_long_folds_that_leave_little_are_divided(shape: tuple[int, int], axis: int) -> None:
    build = Build([list(shape)], [f32])
    module = build.finish(build.add(graph.ReduceOp("sum", build.ew("abs", build.args[0]), [axis], keepdims=True)))
    changed = module.clone()
    GraphToSchedule(instances=264).apply(CompileContext.with_facts(), changed)
    assert sum(isinstance(op, graph.ReduceOp) for op in changed.walk()) == 2
    GraphToSchedule().apply(CompileContext.with_facts(), module)
    assert sum(isinstance(op, graph.ReduceOp) for op in module.walk()) == 1
    ScheduleToTile().apply(CompileContext.with_facts(), changed)
    assert len(kernels(changed)) == 2


def test_what_is_made_of_reductions_stays_with_them() -> None:
    """Losses of rows are one array for the mean of all, and all that is read for them is read by one kernel."""
    build = Build([[64, 40], [64, 1]], [f32, f32])
    x, counts = build.args
    used = build.ew("abs", counts)
    losses = build.ew("mul", used, build.ew("sub", build.reduce("sum", build.ew("exp", x)), build.reduce("max", x)))
    total = build.add(graph.ReduceOp("sum", losses, [0, 1]))
    count = build.add(graph.ReduceOp("sum", used, [0, 1]))
    assert check(build.finish(build.ew("div", total, count))) == 2
