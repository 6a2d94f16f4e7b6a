"""The target `cuda`: NVIDIA's GPUs, by PTX."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tessera.compiler.options import CompileOptions
from tessera.compiler.target import Local, Target, named
from tessera.errors import DeviceError, ResourceError
from tessera.transforms.core.facts import Facts

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass

    from tessera.compiler.artifact import LoweredKernel, Source
    from tessera.compiler.code_counts import CodeCounts
    from tessera.ir.common.schedule_attributes import Config
    from tessera.ir.schedule.dialect import RegionOp
    from tessera.ir.tile.dialect import FuncOp
    from tessera.transforms.core.stages import Stage


class CudaTarget(Target):
    """Compiles PTX, which the driver assembles. The compiler is large: it is loaded when needed."""

    name = "cuda"
    levels = ("sm_80", "sm_89", "sm_90", "sm_90a")
    executable = "tessera.runtime.cuda.executable:CudaExecutable"
    local = "tessera.runtime.cuda.modules:local_memory_of"
    capability = "tessera.runtime.cuda.context:capability_of"
    """`module:attribute` of what tells the compute capability of the GPU with a number."""
    module = "tessera.runtime.cuda.modules:Module"
    """`module:attribute` of what loads code into the context of a GPU."""
    gemv_rows = 1
    instances = 264
    tile_rows = 64
    is_asynchronous = has_graphs = has_warps = keeps_row_alignment = True

    def default_level(self) -> str:
        return self.levels[-1]

    def level_on(self, index: int) -> str:
        return architecture_of(named(self.capability)(index))

    def why_not_here(self, level: str) -> str | None:
        try:
            capability = named(self.capability)(0)
        except DeviceError as error:
            return error.message
        number = level.removeprefix("sm_")
        asked = int(number.rstrip("a"))
        has = 10 * capability[0] + capability[1]
        if has == asked or (has > asked and not number.endswith("a")):
            return None
        return f"the GPU of this machine is of compute capability {capability[0]}.{capability[1]}"

    def get_on_device(self, program: Any, index: int, *, keep: bool = True) -> None:
        if keep:
            program.function(index)
        else:
            named(self.module)(index, program.ptx, f"@{program.plan.name}", keep=False)

    def warm_up(self, options: CompileOptions) -> None:
        from tessera.targets.cuda.compile import ptx_of

        ptx_of("define void @nothing() { ret void }", options)

    def plain_level(self, level: str) -> str:
        """Without warp specialization."""
        return {"sm_90a": "sm_90"}.get(level, level)

    def timing_model(self, level: str) -> str | None:
        return "h200" if level == "sm_90a" else None

    def lower(
        self, source: Source, options: CompileOptions, facts: Facts, lines: Mapping[int, int], local: Local | None
    ) -> LoweredKernel:
        """Compiles, and again with less in registers until a thread's values fit; the last one runs anyhow."""
        from tessera.interpreters.core.engine import symbol_in
        from tessera.ir.tile import dialect as tile
        from tessera.targets.cuda.spill_retries import SpillRetries
        from tessera.transforms.pipelining.exchange_axes import exchanged_axes

        # Results are made by the launch, and are as they should be, unless it is said that they are not.
        arguments = range(source.inputs + source.outputs)
        along = {index: lines.get(index, int(index >= source.inputs)) for index in arguments}
        row_aligned = tuple(index for index, axis in along.items() if axis == 1)
        exchanged = exchanged_axes(symbol_in(source.module, source.name, tile.FuncOp), along)
        chosen = options.with_(row_aligned=row_aligned, exchanged=exchanged)
        return SpillRetries(source, chosen, facts, local).run()

    def emit(self, module: ModuleOp, name: str, options: CompileOptions) -> str:
        from tessera.targets.cuda.compile import emitted_of

        return emitted_of(module, name, options).text

    def assembly(self, written: str, options: CompileOptions) -> str:
        """PTX."""
        from tessera.targets.cuda.compile import ptx_of

        return ptx_of(written, options)

    def counts(self, source: Source, made: LoweredKernel, options: CompileOptions) -> CodeCounts:
        from tessera.interpreters.core.engine import symbol_in
        from tessera.targets.cuda.code_counts import counts_of
        from tessera.targets.cuda.ir import dialect as nv

        function = None if made.module is None else symbol_in(made.module, source.name, nv.FuncOp)
        return counts_of(made.assembly(), function, made.finish().plan.device)

    def counts_of_text(self, assembly: str) -> Mapping[str, CodeCounts] | None:
        from tessera.targets.cuda.code_counts import counts_of_text

        return counts_of_text(assembly)

    def get_ready(self) -> None:
        import_module("tessera.targets.cuda.compile")

    def passes(self) -> Mapping[str, type[ModulePass]]:
        from tessera.targets.cuda.passes import PASSES

        return PASSES

    def blocks_for(self, region: RegionOp, level: str, hints: Mapping[str, int]) -> list[Config]:
        from tessera.targets.cuda.region_blocks import blocks_for

        return blocks_for(region, level, hints=hints)

    def models_blocks(self, level: str) -> bool:
        return level == "sm_90a"

    def modelled_blocks(
        self, function: FuncOp, probe: tuple[int, int, int], row_aligned: Collection[int], fixed: tuple[int, ...]
    ) -> list[tuple[tuple[int, ...], float, bool]]:
        from tessera.targets.cuda.kernel_blocks import modelled_blocks

        return modelled_blocks(function, probe, row_aligned, fixed)

    def is_over_budget(self, error: ResourceError) -> bool:
        from tessera.targets.cuda.lower.check_budget import OverBudgetError

        return isinstance(error, OverBudgetError)

    def check_budget(self, source: Source, level: str) -> None:
        from tessera.targets.cuda.compile import lower_kernel

        options = CompileOptions(self.name, level, warps=source.warps, stages=source.stages)
        lower_kernel(source.module, source.name, options)

    def graph_stages(self) -> dict[str, Stage]:
        from tessera.transforms.core.stages import Stage
        from tessera.transforms.facts.mark_readonly import MarkReadonly

        return {MarkReadonly.name: Stage(MarkReadonly(), "tile")}


def architecture_of(capability: tuple[int, int]) -> str:
    """The architecture to compile for: PTX of an older one runs on newer ones, that of names in `a` on one only."""
    if capability == (9, 0):
        return "sm_90a"
    if capability < (8, 0):
        raise DeviceError(
            f"kernels need a GPU of compute capability 8.0 or newer, this one has {capability[0]}.{capability[1]}",
            hint="run them on the CPU: .cpu()",
        )
    return "sm_90" if capability > (9, 0) else "sm_89" if capability == (8, 9) else "sm_80"


CUDA = CudaTarget()
