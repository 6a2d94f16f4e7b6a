"""The target `cpu`: processors of all families, by machine code that runs in this process."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from tessera.compiler.options import CompileOptions
from tessera.compiler.target import Local, Target
from tessera.device_names import CPU_FAMILIES
from tessera.targets.cpu import features
from tessera.transforms.core.facts import Facts

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass

    from tessera.compiler.artifact import LoweredKernel, Source
    from tessera.compiler.code_counts import CodeCounts
    from tessera.ir.common.schedule_attributes import Config
    from tessera.ir.schedule.dialect import RegionOp


class CpuTarget(Target):
    """Compiles one function per kernel, run by a pool of threads. The compiler is large: it is loaded when needed."""

    name = "cpu"
    levels = tuple(features.LEVELS)
    executable = "tessera.runtime.program.executable:Executable"
    compiles_quickly = True

    def default_level(self) -> str:
        return features.level()

    def unavailable(self) -> str | None:
        if sys.platform == "linux" and features.machine() in CPU_FAMILIES:
            return None
        return f"kernels have machine code on Linux, x86-64 and AArch64, this is {sys.platform}, {features.machine()}"

    def why_not_here(self, level: str) -> str | None:
        if (reason := self.unavailable()) is not None or features.has(level):
            return reason
        return f"this processor has {', '.join(features.up_to(features.host_level()))}"

    def plain_level(self, level: str) -> str:
        """Vectors that need little instruction selection."""
        return {"amx": "avx2", "avx512": "avx2"}.get(level, level)

    def identity(self, level: str, deterministic: bool) -> tuple[object, ...]:
        """The processor with its features; the order of sums is up to calls."""
        return features.target(level)

    def timing_model(self, level: str) -> str | None:
        from tessera.targets.llvm.elements import is_arm

        return "cpu-aarch64" if is_arm(level) else None

    def lower(
        self, source: Source, options: CompileOptions, facts: Facts, lines: Mapping[int, int], local: Local | None
    ) -> LoweredKernel:
        from tessera.compiler.artifact import Artifact, LoweredKernel, Words, plan_of
        from tessera.interpreters.core.engine import symbol_in
        from tessera.ir.tile.dialect import FuncOp
        from tessera.targets.cpu.compile import assembly_of, compile_emitted, emit_kernel, unheeded_hints
        from tessera.transforms.core.compile_report import CompileReport
        from tessera.transforms.core.unheeded_hints import unheeded

        made = emit_kernel(source.module, source.name, options, facts)
        function = symbol_in(source.module, source.name, FuncOp)
        report = CompileReport(f"for {options.level}", unheeded(function, unheeded_hints))

        def finish() -> Artifact:
            image = compile_emitted(made, options)
            words = Words(image.layout.first, image.layout.grid, image.layout.words, image.layout.prints)
            return Artifact(plan_of(source, words, image.messages), image.image, image.guards, image.seconds, report)

        text = made.emitted.text
        return LoweredKernel(
            made.module, text, lambda: assembly_of(text, options), finish, made.guards, made.seconds, report
        )

    def emit(self, module: ModuleOp, name: str, options: CompileOptions) -> str:
        from tessera.targets.cpu.compile import emitted_of

        return emitted_of(module, name, options).text

    def assembly(self, written: str, options: CompileOptions) -> str:
        """The assembly of a processor."""
        from tessera.targets.cpu.compile import assembly_of

        return assembly_of(written, options)

    def counts(self, source: Source, made: LoweredKernel, options: CompileOptions) -> CodeCounts:
        from tessera.targets.cpu.code_counts import counts_of

        return counts_of(made.assembly(), source.name, made.module)

    def counts_of_text(self, assembly: str) -> Mapping[str, CodeCounts] | None:
        from tessera.targets.cpu.code_counts import counts_of_text

        return counts_of_text(assembly)

    def get_ready(self) -> None:
        import_module("tessera.targets.cpu.compile")

    def warm_up(self, options: CompileOptions) -> None:
        from tessera.targets.cpu.compile import EFFORTS
        from tessera.targets.llvm import machine

        processor, extras = features.target(options.level)
        codegen = EFFORTS[options.optimization].codegen
        machine.compile_text("define void @nothing() { ret void }", cpu=processor, features=extras, opt=codegen)

    def passes(self) -> Mapping[str, type[ModulePass]]:
        from tessera.targets.cpu.lower.certain_masks import DropCertainMasks
        from tessera.targets.cpu.lower.tile_to_cpu import TileToCpu
        from tessera.targets.llvm.round_multiples import RoundMultiples

        return {one.name: one for one in (DropCertainMasks, RoundMultiples, TileToCpu)}

    def blocks_for(self, region: RegionOp, level: str, hints: Mapping[str, int]) -> list[Config]:
        from tessera.targets.cpu.region_blocks import blocks_for

        return blocks_for(region, level, hints)


CPU = CpuTarget()
