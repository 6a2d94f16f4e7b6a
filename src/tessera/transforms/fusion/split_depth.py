"""`split-depth`: a matmul whose config splits its depth becomes two kernels.

Where a matmul has few blocks of rows and columns, few multiprocessors would have work. By parts of the depth there are
as many times more program instances; each gives sums in the type that they are carried in. A kernel behind adds them up
in the order of the parts, whatever the order they were done in, so that results are the same each time; and it does
what the region computed of the product.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from tessera.ir.common.locations import span_of
from tessera.ir.common.schedule_attributes import Config, ConfigAttr
from tessera.ir.graph import dialect as graph
from tessera.ir.graph.slices import LAST
from tessera.ir.graph.types import graph_type
from tessera.ir.schedule import dialect as schedule
from tessera.shapes.expr import element_count, format_shape
from tessera.transforms.core.compile_report import CompileReport, Refusal
from tessera.transforms.core.context import report_of
from tessera.transforms.core.index_maps import Var
from tessera.transforms.core.rewriting import adopt_location
from tessera.transforms.fusion.emit_tile_matmuls import block_of, folds, matmul_of, spaces_of, sum_type
from tessera.transforms.fusion.region_spaces import Space, UnfitError, space_of
from tessera.transforms.fusion.regions import enclose
from tessera.transforms.fusion.row_blocks import choose_block, contiguous

INSTANCES = 264
"""Program instances that the kernel behind should have: it only reads and adds, and each has little to do."""
LEAST = 512
"""Elements of one of them, at least."""


@dataclass(frozen=True)
class SplitDepth(ModulePass):
    """Splits the regions whose configs say so; where that cannot be, the report says why, and they stay whole."""

    name = "split-depth"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for region in list(op.walk()):
            if isinstance(region, schedule.RegionOp) and region.kind.data == "matmul" and region.config.data.split:
                split_depth(region, report_of(ctx))


def why_whole(region: schedule.RegionOp) -> str | None:
    """Why the depth of a region cannot be split, as far as its matmul tells; None where it can be."""
    if region.kind.data != "matmul":
        return f"a region of kind {region.kind.data} has no depth"
    op = matmul_of(region)
    if spaces_of(op).batch != 1 or len(graph_type(op.result).shape) != 2:
        return "several matrices are multiplied, which are as many program instances"
    if folds(region):
        return "rows of the left operand are folded, so that a program instance has all of the depth"
    return None


def split_depth(region: schedule.RegionOp, report: CompileReport) -> bool:
    """Replaces a region by one that multiplies in parts, and one behind it that adds them up; whether it could."""
    parts, config = region.config.data.split, replace(region.config.data, split=None)
    region.properties["config"] = ConfigAttr(config)
    if parts is None or parts < 2:
        return False
    if (reason := why_whole(region)) is not None:
        return _refuse(region, reason, report)
    op, outer, block = matmul_of(region), region.parent_block(), region.body.block
    end = block.last_op
    assert outer is not None
    assert isinstance(end, schedule.YieldOp)
    step = block_of(region, spaces_of(op))[2]
    values: dict[SSAValue, SSAValue] = dict(zip(block.args, region.arguments, strict=True))

    def done(ops: Iterable[Operation]) -> list[Operation]:
        wanted = set(ops)
        return [one.clone(values) for one in block.ops if one in wanted]

    multiplying = done(_made_of(op.operands))
    product = graph.MatmulOp(*(values[value] for value in op.operands), to=sum_type(op), parts=parts, step=step)
    product.location, product.result.name_hint = op.location, op.result.name_hint
    adding, values[op.result] = _sum(product.result, op, parts)
    combining = [*adding, *done(_made_of(end.values, but=op))]
    results = [values[value] for value in end.values]
    made = [*multiplying, product, *combining]
    adopt_location(made, region)
    for one in made:
        outer.insert_op_before(one, region)
    try:
        space = space_of(combining, results)
    except UnfitError as unfit:
        for one in reversed(made):
            one.detach()
            one.erase()
        return _refuse(region, unfit.message, report)
    for old, new in zip(region.results_, results, strict=True):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    region.detach()
    region.erase()
    enclose([*multiplying, product], "matmul", config)
    enclose(combining, "pointwise", _thin(space, results))
    shape = format_shape((*graph_type(op.result).shape, graph_type(op.a).shape[-1]))
    report.choices.append(f"a product of {shape} multiplies its depth in {parts} parts, added up behind")
    return True


def _refuse(region: schedule.RegionOp, reason: str, report: CompileReport) -> bool:
    report.refuse(Refusal("parts of the depth", reason, span_of(region.location)))
    return False


def _made_of(values: Iterable[SSAValue], but: Operation | None = None) -> set[Operation]:
    """The ops that values are made of, without one and what that alone is made of."""
    found: set[Operation] = set()
    waiting = list(values)
    while waiting:
        owner = waiting.pop().owner
        if isinstance(owner, Operation) and owner is not but and owner not in found:
            found.add(owner)
            waiting += owner.operands
    return found


def _sum(product: SSAValue, op: graph.MatmulOp, parts: int) -> tuple[list[Operation], SSAValue]:
    """Ops that add parts up in their order, and give the sum as the matmul gives it."""
    made: list[Operation] = []

    def add(one: Operation) -> SSAValue:
        made.append(one)
        return one.results[0]

    shape, dtype = graph_type(op.result).shape, graph_type(op.result).dtype
    total: SSAValue | None = None
    for part in range(parts):
        taken = add(graph.SliceOp(product, [part, 0, 0], [part + 1, LAST, LAST], [1, 1, 1]))
        flat = add(graph.ReshapeOp(taken, shape))
        total = flat if total is None else add(graph.EwOp("add", [total, flat]))
    assert total is not None
    return made, total if dtype == graph_type(total).dtype else add(graph.EwOp("cast", [total], to=dtype))


def _thin(space: Space, results: Sequence[SSAValue]) -> Config:
    """A block for the kernel behind: as many program instances as all multiprocessors need, if there is so much."""
    config, inner = choose_block(space, results), contiguous(space, results)
    blocks = dict(zip(space.variables, config.block or (), strict=True))
    count = element_count([var.extent for var in space.variables])
    most = max(LEAST, count // INSTANCES) if isinstance(count, int) else LEAST

    def shorten(var: Var, limit: int) -> None:
        while blocks[var] > 1 and _volume(blocks) > limit:
            blocks[var] = -(-blocks[var] // 2)

    for var in blocks:
        if var is not inner:
            shorten(var, most)
    if inner in blocks:
        shorten(inner, most)
    return Config(block=tuple(blocks.values()))


def _volume(blocks: dict[Var, int]) -> int:
    found = 1
    for size in blocks.values():
        found *= size
    return found
