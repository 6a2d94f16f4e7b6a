"""The target `cuda`: NVIDIA's GPUs, by PTX."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tessera.compiler.options import CompileOptions
from tessera.compiler.target import Local, Target
from tessera.transforms.core.facts import Facts

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

    from tessera.compiler.artifact import Artifact, Source
    from tessera.ir.common.schedule_attributes import Config
    from tessera.ir.schedule.dialect import RegionOp
    from tessera.transforms.core.stages import Stage


class CudaTarget(Target):
    """Compiles PTX, which the driver assembles. The compiler is large: it is loaded when needed."""

    name = "cuda"
    levels = ("sm_80", "sm_89", "sm_90", "sm_90a")
    executable = "tessera.runtime.cuda.executable:CudaExecutable"
    local = "tessera.runtime.cuda.modules:local_memory_of"
    gemv_rows = 1

    def default_level(self) -> str:
        return self.levels[-1]

    def compile(
        self, source: Source, options: CompileOptions, facts: Facts, lines: Mapping[int, bool], local: Local | None
    ) -> Artifact:
        """Compiles, and again with less in registers until a thread's values fit; the last one runs anyhow."""
        from tessera.targets.cuda.spill_retries import SpillRetries

        # Results are made by the launch, and are as they should be, unless it is said that they are not.
        arguments = range(source.inputs + source.outputs)
        row_aligned = tuple(index for index in arguments if lines.get(index, index >= source.inputs))
        return SpillRetries(source, options.with_(row_aligned=row_aligned), facts, local).run()

    def texts(self, source: Source, options: CompileOptions) -> tuple[str, str]:
        from tessera.interpreters.core.engine import symbol_in
        from tessera.ir.tile import dialect as tile
        from tessera.targets.cuda.compile import emitted_of, lower_kernel, ptx_of

        arguments = symbol_in(source.module, source.name, tile.FuncOp).arguments
        options = options.with_(row_aligned=tuple(range(len(arguments))))
        lowered = lower_kernel(source.module, source.name, options).module
        written = emitted_of(lowered, source.name, options).text
        return written, ptx_of(written, options)

    def passes(self) -> Mapping[str, type[ModulePass]]:
        from tessera.targets.cuda.passes import PASSES

        return PASSES

    def blocks_for(self, region: RegionOp, level: str, hints: Mapping[str, int]) -> list[Config]:
        from tessera.targets.cuda.region_blocks import blocks_for

        return blocks_for(region, level, hints=hints)

    def graph_stages(self) -> dict[str, Stage]:
        from tessera.transforms.core.stages import Stage
        from tessera.transforms.facts.mark_readonly import MarkReadonly

        return {MarkReadonly.name: Stage(MarkReadonly(), "tile")}


CUDA = CudaTarget()
