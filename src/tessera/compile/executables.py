"""Machine code of what was lowered, loaded and ready to be called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tessera.compile.levels import TargetIR
from tessera.compile.profiler import CompilationProfiler
from tessera.compile.subjects import AtTiles, Loaded
from tessera.compiler.artifact import Artifact
from tessera.errors import DeviceError
from tessera.tile.calls.compiling import finished


@dataclass(frozen=True)
class CompiledKernel:
    """Machine code for the arguments that it was lowered for, and all others that its guards admit. Call it."""

    target_ir: TargetIR
    artifacts: tuple[Artifact, ...]
    program: Any
    """The program that calls run: of a kernel a `GuardedKernel`, of a jitted function a `Program`."""
    run: Callable[..., Any]
    stages_ms: Mapping[str, float]

    @property
    def name(self) -> str:
        return self.target_ir.name

    @property
    def code(self) -> bytes:
        """The machine code of all kernels, one after the other; of GPUs their PTX."""
        return b"".join(one.code for one in self.artifacts)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.run(*args, **kwargs)


def to_executable(target_ir: TargetIR, *, must_run: bool = True) -> CompiledKernel:
    """Machine code, loaded. On a machine that cannot run it this is an error; if it need not run, calling it is."""
    chosen, refusal = target_ir.chosen, why_not_here(target_ir)
    if refusal is not None and must_run:
        raise refusal
    target, profiler = chosen.compiler, CompilationProfiler(target_ir.stages_ms)
    artifacts: list[Artifact] = []
    loaded: list[Loaded] = []
    for one in target_ir.parts:
        made = finished(one.made, one.part.source, chosen)
        profiler.take({name: spent for name, spent in made.seconds.items() if name not in one.made.seconds})
        artifacts.append(made)
        if refusal is None:
            program = target.load(made.plan, made.code)
            target.get_on_device(program, 0)
            loaded.append(Loaded(one.part, program, made.guards, made.report))
            profiler.lap("load")
    if refusal is not None:
        return CompiledKernel(target_ir, tuple(artifacts), None, _Refused(refusal), profiler.stages_ms)
    tiles = AtTiles(target_ir.module, target_ir.texts, target_ir.refusals)
    program, run = target_ir.subject.program(tiles, chosen, loaded)
    profiler.lap("load")
    return CompiledKernel(target_ir, tuple(artifacts), program, run, profiler.stages_ms)


def why_not_here(target_ir: TargetIR) -> DeviceError | None:
    """The error of running code where it cannot run; None where it can."""
    chosen = target_ir.chosen
    reason = chosen.compiler.why_not_here(chosen.level)
    if reason is None:
        return None
    return DeviceError(
        f"{target_ir.name} is compiled for {chosen.level} of {chosen.target}, and cannot run here: {reason}",
        hint="read it as text, assembly and report of its target IR, or compile it for this machine",
    )


class _Refused:
    """Calls of what cannot run on this machine."""

    def __init__(self, error: DeviceError) -> None:
        self.error = error

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise DeviceError(self.error.message, hint=self.error.hint)
