"""Compiles kernels and models for every target, and records code, plans, guards and schedules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, replace
from typing import Any

from recorded_entries import Recording, code_text, guards_text, plain_text, without_locations
from recorded_pins import TARGETS, Recorded, Target, compiling_for

from tessera import jit
from tessera.compiler.launch_plan import Plan
from tessera.errors import InternalError, TesseraError
from tessera.lang.calls.variants import ObservedSizes
from tessera.lang.tracing.functions import TracedFunction
from tessera.programs import compile_graph
from tessera.programs.host import Host
from tessera.programs.machine_code import machine_code
from tessera.runtime.device.device import CPU
from tessera.tile.calls.function import Kernel
from tessera.tile.calls.guarded_kernel import GuardedKernel


def record_kernel(
    recording: Recording,
    key: str,
    kernel: Kernel,
    args: Sequence[Any],
    static: Mapping[str, Any],
    targets: Iterable[Target] = TARGETS,
) -> dict[str, GuardedKernel]:
    """A kernel as a call with these arguments compiles it; the programs by target, without those that are refused."""
    found: dict[str, GuardedKernel] = {}
    for target in targets:
        try:
            with compiling_for(target) as chosen:
                program, _ = kernel.program_for(args, static, chosen)
        except TesseraError as error:
            recording.add(f"{key} @ {target}", refused=refusal(error))
            continue
        found[str(target)] = program
        made = program.executable
        assert isinstance(made, Recorded)
        recording.add(
            f"{key} @ {target}",
            code=code_text(made.code.decode(), made.plan.name),
            plan=plan_text(made.plan),
            guards=guards_text(program.guards),
            schedule=plain_text(astuple(program.schedule)),
        )
    return found


def refusal(error: TesseraError) -> str:
    """What an error says, without where: that is a line of the recorder. A fault of the compiler is no refusal."""
    if isinstance(error, InternalError):
        raise error
    lines = (f"{type(error).__name__}: {error.message}", *error.shapes, *error.story, str(error.hint))
    return without_locations("\n".join(lines))


def plan_text(plan: Plan) -> str:
    """Grid, argument words, threads, shared memory, tensor maps, checks and failures of a launch."""
    return plain_text(plan.encoded())


def traced(function: Any, args: Sequence[Any], static: Mapping[str, Any]) -> TracedFunction:
    """A model traced for arguments, as its first call traces it."""
    fresh = jit(function)
    call = fresh.parameters.call(fresh.parameters.bind(args, static))
    return fresh.trace(call, ObservedSizes(), CPU)


def record_model(
    recording: Recording,
    key: str,
    function: Any,
    args: Sequence[Any],
    static: Mapping[str, Any],
    targets: Sequence[Target] = TARGETS,
) -> None:
    """A jitted function: for each target its kernels and the host program around them; without any, its guards."""
    found = traced(function, args, static)
    if not targets:
        guards = [str(one) for one in found.guards]
        least = sorted((name, list(bounds)) for name, bounds in found.least.items())
        sizes = [[one.name, [str(size) for size in one.sizes], str(one.dtype)] for one in found.types]
        recording.add(f"{key} @ trace", guards=plain_text([guards, least]), types=plain_text(sizes))
    record_graph(recording, key, found.module, targets)


def record_graph(recording: Recording, key: str, module: Any, targets: Iterable[Target], name: str = "main") -> None:
    """A graph module for each target: the number of its kernels, its host program, and every kernel."""
    for target in targets:
        try:
            with compiling_for(target) as chosen:
                program = compile_graph(module, chosen, name=name)
                made = [machine_of(program, number, chosen) for number in range(len(program.host.kernels))]
        except TesseraError as error:
            recording.add(f"{key} @ {target}", refused=refusal(error))
            continue
        recording.add(
            f"{key} @ {target}",
            kernels=f"{len(program.host.kernels)} kernels, {len(program.host.launches)} launches",
            host=host_text(program.host),
            code="\n".join(code_text(code.decode(), plan.name) for plan, code in made),
            plan="\n".join(plan_text(plan) for plan, _ in made),
        )


def host_text(found: Host) -> str:
    """What the host does between launches. Kernels have names and hashes of their texts, which are left out."""
    kernels = [[one.warps, one.stages, list(one.in_place)] for one in found.kernels]
    return plain_text([replace(found, kernels=()).encoded(), kernels])


def machine_of(program: Any, number: int, chosen: Any) -> tuple[Plan, bytes]:
    """The plan and the code of a kernel of a program, for arrays whose rows lie well."""
    kernel = program.host.kernels[number]
    launch = next(one for one in program.host.launches if one.kernel == number)
    lines = (True,) * (len(launch.inputs) + len(launch.outputs)) if chosen.target == "cuda" else None
    made = machine_code(program.codes.tile_module, kernel, chosen, lines)
    return made.plan, made.code
