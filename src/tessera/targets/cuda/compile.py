"""Tile function → PTX for GPUs: lists of stages, tried in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from xdsl.dialects.builtin import ModuleOp

from tessera import knobs
from tessera.compiler.attempts import Attempt, Fit, first_that_fits
from tessera.compiler.options import CompileOptions
from tessera.interpreters.core.engine import symbol_in
from tessera.ir import text
from tessera.ir.tile import dialect as tile
from tessera.shapes.expr import Shape
from tessera.targets.common.preparing import first_stages, isolated
from tessera.targets.common.stage_times import StageTimes
from tessera.targets.cuda.emit.emitter import Emitted, EmittedBlock
from tessera.targets.cuda.emit.rules import emit
from tessera.targets.cuda.hopper.choose_warp_groups import WarpGroupPlan, warp_group_plans, why_not
from tessera.targets.cuda.hopper.supported import check_alone
from tessera.targets.cuda.hopper.warp_specialized_chain import warp_specialized_stages
from tessera.targets.cuda.ir import dialect as nv
from tessera.targets.cuda.levels import LEVELS, read
from tessera.targets.cuda.lower.budget import shared_bytes
from tessera.targets.cuda.lower.check_budget import budget_fit, over_budget
from tessera.targets.cuda.lower.choose_plan import SHARED, BlockPlan, plans
from tessera.targets.cuda.lower.hoist_loads import HoistLoads
from tessera.targets.cuda.lower.legalize import check_supported, legalize_stages
from tessera.targets.cuda.lower.mark_row_aligned import MarkRowAligned
from tessera.targets.cuda.lower.memory_hints import PortableHints, SpecializedHints, stages_of_hints
from tessera.targets.cuda.lower.ordered_atomics import OrderAtomics
from tessera.targets.cuda.lower.portable_stages import portable_stages
from tessera.targets.cuda.ptx.tools import BRIEFLY
from tessera.targets.llvm import machine
from tessera.transforms.checks.host_checks import TakeHostChecks
from tessera.transforms.core.compile_report import CompileReport, Refusal
from tessera.transforms.core.context import CompileContext, HostCheck
from tessera.transforms.core.facts import FactKind, Facts
from tessera.transforms.core.stages import NO_FILES, Files, Stage, StageRunner
from tessera.transforms.core.unheeded_hints import unheeded
from tessera.transforms.facts.fix_sizes import FixSizes
from tessera.transforms.facts.mark_readonly import readonly_arguments
from tessera.transforms.pipelining.exchange_axes import ExchangeAxes

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
SPECIALIZED = "sm_90a"
"""The architecture with warp groups."""
TRIPLE = 'target triple = "nvptx64-nvidia-cuda"\n'
NEWEST = CompileOptions("cuda", SPECIALIZED)


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
    llvm: str = field(default="", compare=False)
    """LLVM's text, which the PTX was made of."""
    seconds: Mapping[str, float] = field(default_factory=dict[str, float], compare=False)
    report: CompileReport = field(default_factory=CompileReport, compare=False)

    @property
    def module(self) -> ModuleOp | None:
        """The module at the nv level."""
        found = None if self.function is None else self.function.parent_op()
        return found if isinstance(found, ModuleOp) else None


class LoweredToNv(NamedTuple):
    """The nv level of a tile function, checks before it runs, facts it rests on, seconds by stage, ways refused."""

    module: ModuleOp
    checks: list[HostCheck]
    guards: Facts
    seconds: dict[str, float]
    report: CompileReport
    files: Files
    stages: int
    """How many stages it went through."""


def compile_kernel(
    module: ModuleOp, name: str, options: CompileOptions = NEWEST, facts: Facts | None = None, spill_retry: int = 0
) -> CompiledPtx:
    """Compiles a tile function.

    With each `spill_retry` threads hold less at a time, for kernels whose registers spilled before.
    """
    lowered = lower_kernel(module, name, options, facts, spill_retry)
    program = compile_lowered(lowered.module, name, options, lowered.files, lowered.stages)
    return replace(
        program,
        checks=tuple(lowered.checks),
        guards=lowered.guards,
        seconds={**lowered.seconds, **program.seconds},
        report=lowered.report,
    )


def lower_kernel(
    module: ModuleOp, name: str, options: CompileOptions = NEWEST, facts: Facts | None = None, spill_retry: int = 0
) -> LoweredToNv:
    """The nv level of a tile function: warp-specialized if it can be, else by the path for every GPU."""
    return _NvLowering(module, name, options, facts or Facts(), spill_retry).run()


class _Prepared(NamedTuple):
    """A tile function that knows its facts, in legal form, and the runner that brought it there."""

    module: ModuleOp
    runner: StageRunner

    @property
    def context(self) -> CompileContext:
        assert isinstance(self.runner.context, CompileContext)
        return self.runner.context


class _NvLowering:
    """One kernel on its way to the nv level."""

    def __init__(self, module: ModuleOp, name: str, options: CompileOptions, facts: Facts, spill_retry: int) -> None:
        self.source, self.name, self.options, self.facts = module, name, options, facts
        self.spill_retry = spill_retry
        self.mapped = (*options.row_aligned, *(argument for argument, _ in options.exchanged))
        """Arguments that may have tensor maps."""
        self.small = options.optimization == SMALL
        self.report = CompileReport()
        self.hints: list[Refusal] = []
        """The hints that change nothing on the way that is taken."""
        self.seconds: dict[str, float] = {}
        files = Files.of(module, read)
        self.files = files.within(f"spill-retry-{spill_retry}") if spill_retry else files

    def run(self) -> LoweredToNv:
        # The first attempt specializes warps; spill retries take the path for every GPU.
        tries = self.options.level == SPECIALIZED and self.spill_retry == 0 and not self.options.checks
        # Copies know the strides of arguments with tensor maps from these: facts about them are not needed.
        known = _without_strides(self.facts, self.mapped) if tries else self.facts
        prepared, found = self._prepared(known, self.files, fixed=tries), None
        self.hints = unheeded(self.function(prepared.module), SpecializedHints.unheeded) if tries else []
        if tries:
            found = self._warp_specialized(prepared, fixed=bool(known))
        if found is None and tries and self.facts:
            prepared = self._prepared(self.facts, self.files.within("portable"), fixed=False)
        if found is None:
            function = self.function(prepared.module)
            self.hints = unheeded(function, PortableHints(function).unheeded)
            found = first_that_fits(self._portable(prepared), self.report)
            if found is None:
                raise over_budget(self.function(self.source), self.options.level, self.report)
        for refusal in self.hints:
            self.report.refuse(refusal)
        made, runner = found
        made = runner.run(made, self._last_stages())
        # The optimized kernel is verified; a fast compile does not wait for that.
        if not self.small or knobs.verify.value:
            laps = StageTimes()
            runner.verify(made, "nv")
            laps.lap("verify")
            self.seconds |= laps
        context = prepared.context
        return LoweredToNv(
            made, context.host_checks, context.recorder.guards, self.seconds, self.report, runner.files, runner.count
        )

    def function(self, module: ModuleOp) -> tile.FuncOp:
        return symbol_in(module, self.name, tile.FuncOp)

    def _prepared(self, facts: Facts, files: Files, *, fixed: bool) -> _Prepared:
        options, context = self.options, CompileContext.with_facts(facts)
        written = partial(text.write, self.source)
        runner = StageRunner(f"@{self.name}", context, files, written, LEVELS, seconds=self.seconds)
        front = dict[str, Stage]()
        if options.exchanged:
            front[ExchangeAxes.name] = Stage(ExchangeAxes.of(options.exchanged), "tile")
        front |= first_stages(self.function(self.source), facts, options.checks)
        front[TakeHostChecks.name] = Stage(TakeHostChecks(), "tile")
        module = runner.run(runner.begin(isolated(self.source, self.name), "kernel"), front)
        check_supported(self.function(module))
        contract = options.optimization != EXACT
        passes = legalize_stages(contract=contract, arch=options.level, fast=self.small)
        legal = {name: Stage(one, "tile") for name, one in passes.items()}
        if fixed:
            legal[FixSizes.name] = Stage(FixSizes(), "tile")
        return _Prepared(runner.run(module, legal), runner)

    def _through(
        self, prepared: _Prepared, way: str, stages: Mapping[str, Stage], *, is_last: bool = False
    ) -> tuple[ModuleOp, StageRunner]:
        runner = replace(prepared.runner, files=prepared.runner.files.within(way))
        return runner.run(prepared.module if is_last else prepared.module.clone(), stages), runner

    def _warp_specialized(self, prepared: _Prepared, *, fixed: bool) -> tuple[ModuleOp, StageRunner] | None:
        function, options = self.function(prepared.module), self.options
        refusal = why_not(function, options.warps, self.mapped)
        if refusal is not None:
            if any(isinstance(op, tile.DotOp) for op in function.body.walk()):
                self.report.refuse(Refusal.of("warp-specialized", refusal))
            return None
        stages = stages_of_hints(function) or options.stages
        found = warp_group_plans(function, options.warps, stages, self.mapped)
        attempts = (self._specialized_attempt(prepared, plan, fixed=fixed) for plan in found)
        taken = first_that_fits(attempts, self.report, is_optional=True)
        if taken is None and not self.report.fallbacks:
            last = self.report.refusals[-1]
            self.report.refuse(replace(last, way="warp-specialized", is_slower=True))
        return taken

    def _specialized_attempt(
        self, prepared: _Prepared, plan: WarpGroupPlan, *, fixed: bool
    ) -> Attempt[tuple[ModuleOp, StageRunner]]:
        way = f"warp-specialized, {plan.consumers} consumers, rings of {plan.depth} and {plan.ahead}"

        def make() -> tuple[ModuleOp, StageRunner]:
            stages = warp_specialized_stages(self.function(prepared.module), plan, self.mapped, fixed=fixed)
            made, runner = self._through(prepared, way, stages)
            check_alone(symbol_in(made, self.name, nv.FuncOp))
            return made, runner

        return Attempt(way, make, lambda found: self._has_shared_memory(found[0]))

    def _has_shared_memory(self, module: ModuleOp) -> Fit:
        needed, most = shared_bytes(symbol_in(module, self.name, nv.FuncOp)), SHARED[SPECIALIZED]
        if needed <= most:
            return Fit()
        words = f"a block needs {-(-needed // 1024)} KB of shared memory, and has {most // 1024}"
        return Fit(words, hint="give it a smaller block, or fewer stages")

    def _portable(self, prepared: _Prepared) -> Iterator[Attempt[tuple[ModuleOp, StageRunner]]]:
        options, function = self.options, self.function(prepared.module)
        found = list(plans(function, options.warps, options.stages, max(0, self.spill_retry - 1), options.level))
        for number, plan in enumerate(found, 1):
            way, stages = _way_of(plan), portable_stages(plan, small=self.small)
            # The last one needs no copy of the module.
            make = partial(self._through, prepared, way, stages, is_last=number == len(found))
            yield Attempt(way, make, lambda made: budget_fit(symbol_in(made[0], self.name, nv.FuncOp), options.level))

    def _last_stages(self) -> dict[str, Stage]:
        """What follows on every way."""
        options = self.options
        readonly = readonly_arguments(symbol_in(self.source, self.name, tile.FuncOp))
        exchanged = tuple(number for pair in options.exchanged for number in pair)
        hoist = HoistLoads(readonly, options.follows, options.level in FOLLOWING)
        passes = (
            *([OrderAtomics()] if options.deterministic else []),
            *([MarkRowAligned(options.row_aligned, exchanged)] if self.mapped else []),
            *([hoist] if readonly or options.follows else []),
        )
        return {one.name: Stage(one, "nv") for one in passes}


def _way_of(plan: BlockPlan) -> str:
    rows = "" if plan.rows is None else f", {plan.rows} rows at a time"
    return f"portable, warps={plan.warps} and stages={plan.depth}{rows}"


def _without_strides(facts: Facts, mapped: tuple[int, ...]) -> Facts:
    """Facts without those about the strides of some arguments."""
    arguments = {f"arg{index}" for index in mapped}
    return facts.without(*(one for one in facts.of_kind(FactKind.STRIDE) if one.subject.partition(".")[0] in arguments))


def compile_lowered(
    module: ModuleOp, name: str, options: CompileOptions = NEWEST, files: Files = NO_FILES, count: int = 0
) -> CompiledPtx:
    """Compiles a function that is at the nv level already, written by passes or by hand."""
    seconds = StageTimes()
    emitted = emitted_of(module, name, options, files, count)
    seconds.lap("emit")
    ptx = ptx_of(emitted.text, options)
    if files is not NO_FILES:
        ptx = files.text_instead(count + 1, "ptx", ptx, ".ptx")
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
        llvm=emitted.text,
        seconds=dict(seconds),
    )


def emitted_of(
    module: ModuleOp, name: str, options: CompileOptions = NEWEST, files: Files = NO_FILES, count: int = 0
) -> Emitted:
    """LLVM text of a function at the nv level."""
    emitted = emit(module, name, options.level)
    return (
        emitted if files is NO_FILES else replace(emitted, text=files.text_instead(count, "emit", emitted.text, ".ll"))
    )


def ptx_of(written: str, options: CompileOptions) -> str:
    """LLVM text as PTX."""
    small, arch = options.optimization == SMALL, options.level
    ptx = machine.assembly(TRIPLE + written, cpu=arch, features=FEATURES[arch], opt=0 if small else 2)
    return f"{BRIEFLY}\n{ptx}" if small else ptx
