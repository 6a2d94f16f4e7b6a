"""The PTX of kernels and jitted functions: as compiled without a GPU, and of the programs that run on one."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from unittest.mock import patch

from tessera import knobs
from tessera.bench.results.definitions import BenchError
from tessera.lang.calls.variants import ObservedSizes
from tessera.lang.jit import Jitted
from tessera.programs import compile_graph
from tessera.programs.buffer_assignment import assign_buffers
from tessera.programs.machine_code import machine_code
from tessera.programs.row_alignment import RowAlignment, launches_in
from tessera.runtime.cuda.executable import CudaExecutable
from tessera.runtime.device.device import CPU
from tessera.runtime.tensor.tensor import Tensor
from tessera.tile.calls.function import Kernel
from tessera.tile.calls.guarded_kernel import GuardedKernel
from tessera.tile.calls.settings import Settings, settings

ARCHITECTURE = "sm_90a"
_FOLDERS = re.compile(r"/[^\s:]*/(?=[^\s:/]+\.py:)")


def text_for(kernel: Kernel, *args: object, arch: str = ARCHITECTURE, **kwargs: object) -> str:
    """The PTX for arguments like these, tensors of the host: `tessera.empty` makes some that take no memory."""
    chosen = _settings(arch, knobs.optimization.value, knobs.checks.value, knobs.deterministic.value)
    return _executable(kernel.program_for(args, kwargs, chosen)[0]).ptx.decode()


@cache
def _settings(arch: str, optimization: int, checks: frozenset[str], deterministic: bool) -> Settings:
    """Equal ones are one object: a kernel compiles a text once."""
    return Settings("cuda", arch, optimization, checks, deterministic, True)


def program_of(kernel: Kernel, *args: object, **kwargs: object) -> CudaExecutable:
    """The executable that a call with these arguments, tensors of a GPU, runs; it has its `ptx`."""
    chosen = settings()
    if chosen is None:
        raise BenchError(f"{kernel.__name__} runs in the interpreter", hint="unset TESSERA_INTERPRET and its like")
    return _executable(kernel.program_for(args, kwargs, chosen)[0])


def calls_of(
    function: Callable[..., object], *args: object
) -> list[tuple[Kernel, Sequence[object], dict[str, object]]]:
    """The kernels that a function calls, with their arguments: they are noted instead of run."""
    found: list[tuple[Kernel, Sequence[object], dict[str, object]]] = []

    def note(kernel: Kernel, *given: object, **static: object) -> None:
        found.append((kernel, given, static))

    with patch.object(Kernel, "__call__", note):
        function(*args)
    for kernel, _, _ in found:
        # Kernels made meanwhile, and kept, have put their calls where there is a slot for them again.
        if (call := vars(kernel).pop("__call__", None)) is not None:
            kernel.__call__ = call
    return found


def text_of_calls(function: Callable[..., object], *args: object) -> str:
    """The PTX of all kernels that a function calls, with tensors of the host as arguments or those of a GPU."""
    on_host = all(arg.device.is_host for arg in args if isinstance(arg, Tensor))
    made: Callable[..., str] = text_for if on_host else text_of
    return "\n".join(made(kernel, *given, **static) for kernel, given, static in calls_of(function, *args))


def text_of(kernel: Kernel, *args: object, **kwargs: object) -> str:
    """The PTX that a call with these arguments, tensors of a GPU, runs."""
    return program_of(kernel, *args, **kwargs).ptx.decode()


def ways_of(called: Kernel | Jitted | Callable[..., object], *args: object, **kwargs: object) -> list[str]:
    """How what a call with these arguments, tensors of a GPU, runs was compiled, and what was refused: a line for each.

    Files are named without their folders.
    """
    if isinstance(called, Jitted):
        lines = called.lower(*args, **kwargs).program.explain()
    elif not isinstance(called, Kernel):
        calls = calls_of(called, *args)
        return [line for kernel, given, static in calls for line in ways_of(kernel, *given, **static)]
    else:
        chosen = settings()
        assert chosen is not None, "who has results has run"
        lines = called.program_for(args, kwargs, chosen)[0].report.lines()
    return [_FOLDERS.sub("", line.strip()) for line in lines]


def _executable(program: GuardedKernel) -> CudaExecutable:
    if not isinstance(program.executable, CudaExecutable):
        raise BenchError("the program has no code for GPUs", hint="give tensors of a GPU")
    return program.executable


def program_text_for(jitted: Jitted, *calls: Sequence[object], arch: str = ARCHITECTURE, **static: object) -> str:
    """The PTX of all kernels of a jitted function or an operator's, as the last of these calls would compile it.

    Arguments are tensors of the host. Sizes in which the calls differ are symbols.
    """
    seen = ObservedSizes()
    given = [jitted.parameters.call(jitted.parameters.bind(one, static)) for one in calls]
    for call in given:
        seen.add(call.values)
    chosen = _settings(arch, knobs.optimization.value, knobs.checks.value, knobs.deterministic.value)
    program = compile_graph(jitted.trace(given[-1], seen, CPU).module, chosen)
    values = given[-1].values
    buffers = assign_buffers(program.host, program.sizes(values), [(one.shape, one.strides) for one in values])
    aligned = RowAlignment(buffers, [one.meta.alignment for one in values])
    runs = {(run.kernel, aligned.lines(run)): None for run in launches_in(buffers.acts)}
    module, kernels = program.codes.tile_module, program.host.kernels
    return "\n".join(machine_code(module, kernels[one], chosen, lines).code.decode() for one, lines in sorted(runs))


def text_of_program(jitted: Jitted, *args: object, **static: object) -> str:
    """The PTX of all kernels that a call of a jitted function with these arguments, tensors of a GPU, has run."""
    made = jitted.lower(*args, **static).program.codes.made
    return "\n".join(one.ptx.decode() for one in made if isinstance(one, CudaExecutable))
