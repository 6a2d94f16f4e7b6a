"""Tile function → PTX for GPUs, in named stages."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i32
from xdsl.rewriter import Rewriter

from tessera import knobs
from tessera.interpreters.core.engine import symbol_in
from tessera.ir.common.attributes import integers
from tessera.ir.text import verify
from tessera.ir.tile import dialect as tile
from tessera.shapes.expr import Shape, element_count
from tessera.targets.common.specializing import specialized
from tessera.targets.common.stage_times import StageTimes
from tessera.targets.cuda.emit.divisors import ALIGNED_ROWS
from tessera.targets.cuda.emit.emitter import EmittedBlock
from tessera.targets.cuda.emit.rules import emit
from tessera.targets.cuda.hopper.choose_warp_groups import warp_group_plans
from tessera.targets.cuda.hopper.warp_specialized_chain import warp_specialized
from tessera.targets.cuda.ir import dialect as nv
from tessera.targets.cuda.ir.hopper import ExtentOp
from tessera.targets.cuda.lower.check_budget import fitted
from tessera.targets.cuda.lower.choose_plan import BlockPlan, plans
from tessera.targets.cuda.lower.hoist_loads import hoist_loads, is_plain
from tessera.targets.cuda.lower.interleave_copies import interleave_copies
from tessera.targets.cuda.lower.legalize import legalize
from tessera.targets.cuda.lower.mark_in_bounds import mark_in_bounds
from tessera.targets.cuda.lower.merge_conversions import merge_conversions
from tessera.targets.cuda.lower.order_memory import order_memory
from tessera.targets.cuda.lower.ordered_atomics import order_atomics
from tessera.targets.cuda.lower.rotate_loops import rotate_loops
from tessera.targets.cuda.lower.tile_to_nv import lower
from tessera.targets.cuda.ptx.tools import BRIEFLY
from tessera.targets.llvm import machine
from tessera.transforms.checks.host_checks import HostCheck, take_host_checks
from tessera.transforms.core.context import CompileContext
from tessera.transforms.core.facts import FactKind, Facts
from tessera.transforms.facts.fix_sizes import fix_sizes
from tessera.transforms.facts.mark_readonly import READONLY, readonly_arguments
from tessera.transforms.loops.live_iterations import clip_ranges, split_ranges
from tessera.transforms.pipelining.make_async import make_async
from tessera.transforms.pipelining.partition_rows import spread_rows
from tessera.transforms.pipelining.unroll_rings import unroll_rings

FEATURES: Mapping[str, str] = {"sm_80": "+ptx80", "sm_89": "+ptx84", "sm_90": "+ptx84", "sm_90a": "+ptx84"}
FEW_SPILLS = 64
"""Bytes of local memory that a thread may need beside dots: accumulators fill its registers, and a few numbers that the
inner loops do not touch may lie elsewhere."""
SMALL = 0
"""The optimization at which code is short, for a fast compile."""
EXACT = 1
"""The optimization at which nothing is rounded otherwise than at the tile level."""
FOLLOWING = ("sm_90", "sm_90a")
"""Machines on which a kernel may be started while the one in front of it runs."""
MULTIPROCESSORS = 132
SHORT_THREADS = 256
TRIPLE = 'target triple = "nvptx64-nvidia-cuda"\n'


@dataclass(frozen=True)
class CompiledPtx:
    """PTX of one kernel, and the facts that a launch needs. It is right only where its guards hold."""

    name: str
    ptx: str
    block: EmittedBlock
    threads: int
    shared: int
    messages: tuple[str, ...]
    local: int = 0
    """Bytes of local memory that a thread may need."""
    grid: Shape = ()
    checks: tuple[HostCheck, ...] = ()
    guards: Facts = field(default_factory=Facts)
    function: nv.FuncOp | None = field(default=None, compare=False)
    """The compiled function: its attributes and its tensor maps say how to launch it."""
    seconds: Mapping[str, float] = field(default_factory=dict[str, float], compare=False)


def compile_kernel(
    module: ModuleOp,
    name: str,
    *,
    arch: str = "sm_90a",
    warps: int | None = None,
    stages: int | None = None,
    optimization: int = 3,
    checks: Collection[str] = (),
    facts: Facts | None = None,
    row_aligned: Collection[int] = (),
    spill_retry: int = 0,
    ordered: bool = False,
    follows: bool = False,
) -> CompiledPtx:
    """Compiles a tile function. Rows of the arguments `row_aligned` are contiguous and begin at multiples of 16 bytes.

    A kernel that `follows` others may be started while they run, if it can wait by itself. With each `spill_retry`
    threads hold less at a time, for kernels whose registers spilled before. With `ordered`, blocks that add floats to
    memory do so one after the other.
    """
    lowered, found, guards, seconds = lower_kernel(
        module,
        name,
        arch=arch,
        warps=warps,
        stages=stages,
        optimization=optimization,
        checks=checks,
        facts=facts,
        row_aligned=row_aligned,
        spill_retry=spill_retry,
        ordered=ordered,
        follows=follows,
    )
    program = compile_lowered(lowered, name, arch=arch, optimization=optimization)
    return replace(program, checks=tuple(found), guards=guards, seconds={**seconds, **program.seconds})


def lower_kernel(
    module: ModuleOp,
    name: str,
    *,
    arch: str = "sm_90a",
    warps: int | None = None,
    stages: int | None = None,
    optimization: int = 3,
    checks: Collection[str] = (),
    facts: Facts | None = None,
    row_aligned: Collection[int] = (),
    spill_retry: int = 0,
    ordered: bool = False,
    follows: bool = False,
) -> tuple[ModuleOp, list[HostCheck], Facts, Mapping[str, float]]:
    """The nv level of a tile function, the checks before it runs, the facts it rests on, and seconds by stage."""
    seconds, given = StageTimes(), facts or Facts()
    consumers = arch == "sm_90a" and spill_retry == 0 and not checks
    # Copies know the strides of arguments with tensor maps from these: facts about them are not needed.
    known = _without_strides(given, row_aligned) if consumers else given
    special, (lowered, found, context) = None, _prepared(module, name, known, checks, optimization, arch, seconds)
    if consumers:
        function = symbol_in(lowered, name, tile.FuncOp)
        fix_sizes(function, context.recorder)
        special = warp_specialized(lowered, name, warp_group_plans(function, warps, stages, row_aligned), row_aligned)
        if special is not None and known:
            _fix_extents(symbol_in(special, name, nv.FuncOp))
        seconds.lap("warp groups")
    if special is None and given:
        lowered, found, context = _prepared(module, name, given, checks, optimization, arch, seconds)
    function = symbol_in(lowered, name, tile.FuncOp)
    # The first attempt specializes warps; spill retries take the path for every GPU.
    lowered = special or fitted(
        lowered,
        name,
        arch,
        plans(function, warps, stages, max(0, spill_retry - 1), arch),
        lambda made, plan: _lower(made, name, plan, small=optimization == SMALL),
    )
    made = symbol_in(lowered, name, nv.FuncOp)
    if ordered:
        order_atomics(made)
    if row_aligned:
        made.attributes[ALIGNED_ROWS] = integers(sorted(row_aligned))
    still = readonly_arguments(symbol_in(module, name, tile.FuncOp))
    if (still or (follows and _is_short(made))) and is_plain(made):
        if still:
            made.attributes[READONLY] = integers(still)
        mark_in_bounds(made)
        hoist_loads(made, still, follows=follows and arch in FOLLOWING)
    seconds.lap("tile-to-nv")
    # The optimized kernel is verified; a fast compile does not wait for that.
    if optimization != SMALL or knobs.verify.value:
        verify(lowered)
    seconds.lap("verify")
    return lowered, found, context.recorder.guards, seconds


def _is_short(function: nv.FuncOp) -> bool:
    """Whether all blocks of a kernel run at once, with threads to spare: starting it takes longer than it does."""
    count = element_count(function.grid.data)
    return isinstance(count, int) and count <= MULTIPROCESSORS and function.thread_count <= SHORT_THREADS


def _without_strides(facts: Facts, row_aligned: Collection[int]) -> Facts:
    """Facts without those about the strides of some arguments."""
    arguments = {f"arg{index}" for index in row_aligned}
    return facts.without(*(one for one in facts.of_kind(FactKind.STRIDE) if one.subject.partition(".")[0] in arguments))


def _fix_extents(function: nv.FuncOp) -> None:
    """Replaces extents of the grid that facts have made constants."""
    for op in [op for op in function.walk() if isinstance(op, ExtentOp)]:
        extent = function.grid.data[op.axis.value.data]
        if isinstance(extent, int):
            Rewriter.replace_op(op, arith.ConstantOp(IntegerAttr(extent, i32)))


def _prepared(
    module: ModuleOp,
    name: str,
    facts: Facts,
    checks: Collection[str],
    optimization: int,
    arch: str,
    seconds: StageTimes,
) -> tuple[ModuleOp, list[HostCheck], CompileContext]:
    """The module with facts applied, ready for a plan; and what has to be checked before it runs."""
    lowered, context = specialized(module, name, facts, checks, seconds)
    function = symbol_in(lowered, name, tile.FuncOp)
    found = take_host_checks(function)
    legalize(function, contract=optimization != EXACT, arch=arch, fast=optimization == SMALL)
    seconds.lap("prepare")
    return lowered, found, context


def _lower(module: ModuleOp, name: str, plan: BlockPlan, *, small: bool) -> None:
    """Lowers a tile function to the nv level under a plan."""
    apply_plan(symbol_in(module, name, tile.FuncOp), plan, small=small)
    lower(module, name, plan.warps, small=small)
    made = symbol_in(module, name, nv.FuncOp)
    merge_conversions(made)
    if not small:
        rotate_loops(made)
        interleave_copies(made)
    order_memory(made)


def apply_plan(function: tile.FuncOp, plan: BlockPlan, *, small: bool = False) -> None:
    """The rewrites above layouts that a plan asks for; where code is to be small, no loop is written twice."""
    if plan.rows is not None:
        spread_rows(function, plan.rows)
    clip_ranges(function)
    make_async(function, plan.depth)
    if not small:
        split_ranges(function)
    unroll_rings(function)


def compile_lowered(module: ModuleOp, name: str, *, arch: str = "sm_90a", optimization: int = 3) -> CompiledPtx:
    """Compiles a function that is at the nv level already, written by passes or by hand."""
    seconds = StageTimes()
    emitted = emit(module, name, arch)
    seconds.lap("emit")
    ptx = ptx_of(emitted.text, arch, optimization)
    seconds.lap("llvm")
    function = symbol_in(module, name, nv.FuncOp)
    dots = any(isinstance(op, nv.MmaOp) for op in function.walk())
    return CompiledPtx(
        name,
        ptx,
        emitted.block,
        function.thread_count,
        emitted.shared,
        emitted.messages,
        FEW_SPILLS if dots else 0,
        tuple(function.grid.data),
        function=function,
        seconds=dict(seconds),
    )


def ptx_of(written: str, arch: str, optimization: int = 3) -> str:
    """LLVM text as PTX."""
    small = optimization == SMALL
    ptx = machine.assembly(TRIPLE + written, cpu=arch, features=FEATURES[arch], opt=0 if small else 2)
    return f"{BRIEFLY}\n{ptx}" if small else ptx
