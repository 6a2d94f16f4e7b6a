"""Kernels that print, compiled for GPUs and run on the PTX machine: their results, and the text of their prints."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np
from ptx_machine import Launch

import tessera as ts
from tessera.compiler.artifact import Artifact
from tessera.compiler.launch_plan import PRINTS, ArrayArgument, Plan
from tessera.compiler.options import CompileOptions
from tessera.runtime.program import prints
from tessera.targets.cuda.target import CUDA
from tessera.tile.calls.compiling import source_of
from tessera.tile.calls.function import Kernel
from tessera.transforms.core.facts import Facts


class Emulated(NamedTuple):
    """What a run leaves behind."""

    text: str
    results: list[Any]
    failures: list[str]
    made: Artifact


def compiled(kernel: Kernel, *args: Any, arch: str = "sm_90a", aligned: bool = False, **options: Any) -> Artifact:
    """A kernel for such arguments, whose rows are aligned well or not."""
    source = source_of(kernel.lower(*args))
    lines = dict.fromkeys(range(source.inputs + source.outputs), aligned)
    chosen = CompileOptions("cuda", arch, warps=source.warps, stages=source.stages, **options)
    return CUDA.lower(source, chosen, Facts(), lines, None).finish()


def emulated(kernel: Kernel, *args: Any, **options: Any) -> Emulated:
    """Runs a kernel on arrays of the host and numbers; the buffer for what it prints is the knob's."""
    made = compiled(kernel, *args, **options)
    plan, device = made.plan, made.plan.device
    assert device is not None
    given: list[Any] = [np.array(one.numpy()) if isinstance(one, ts.Tensor) else one for one in args]
    of_arrays: list[tuple[int, ...] | None] = [one.shape if isinstance(one, ts.Tensor) else None for one in args]
    sizes = plan.sizes(of_arrays)
    shapes = plan.result_shapes(sizes)
    made_anew: list[Any] = [np.zeros(shape, one.dtype.storage) for one, shape in zip(plan.results, shapes, strict=True)]
    launch, record = Launch(), _record(plan)
    for argument, value in zip(plan.arguments, [*given, *made_anew], strict=True):
        if isinstance(argument, ArrayArgument):
            launch.view(value)
        else:
            launch.number(value)
    grid = plan.extents(sizes)
    launch.words += grid
    launch.view(record)
    del launch.words[device.report_word + 1 :]
    blocks = range(device.blocks(prod(grid), 132))
    launch.run(made.code.decode(), device.threads, device.shared, plan.block_bytes, blocks)
    lines: list[str] = []
    prints.show_records(plan, record[PRINTS:].data, lines.append)
    status = int(record[:8].view(np.int64)[0])
    failures = [plan.failures[status - 1].message] if status else []
    return Emulated("".join(lines), made_anew, failures, made)


def _record(plan: Plan) -> Any:
    size = prints.buffer_size()
    record = np.zeros(PRINTS + -(-size // 8) * 8, np.uint8)
    head = np.frombuffer(prints.empty_head(size), np.uint8)
    record[PRINTS : PRINTS + len(head)] = head
    return record
