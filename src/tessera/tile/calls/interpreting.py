"""Kernels in the interpreter: instances run on tensors and numbers, under the checks that are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from tessera import knobs
from tessera.dtypes.types import DType
from tessera.errors import ShapeError
from tessera.interpreters.sanitizers.checks import NumericChecks, asked, checking
from tessera.runtime.tensor.mirror import Mirror
from tessera.runtime.tensor.tensor import Tensor
from tessera.shapes.environment import Origin, ShapeEnvironment
from tessera.shapes.expr import dim
from tessera.tile.calls.instance import Instance
from tessera.tile.calls.settings import device_of


def interpret(instance: Instance, values: Sequence[Any]) -> Any:
    """Runs an instance in the interpreter, under the checks that are asked for around the call.

    Arrays of a GPU come over to the host for it, and go back again.
    """
    from tessera.interpreters.levels.tile import run_kernel

    device, mirror = device_of(instance.name, values), Mirror()
    arrays = [mirror.array(value) if isinstance(value, Tensor) else value for value in values]
    outputs = [
        Tensor.wrap(_empty(shape, dtype), dtype)
        for shape, (_, dtype) in zip(output_shapes(instance, values), instance.outputs, strict=True)
    ]
    with _checking():
        run_kernel(instance.module, instance.name, [*arrays, *(output.numpy() for output in outputs)], covered=True)
    mirror.bring_back()
    if not outputs:
        return None
    outputs = [output.to(device) for output in outputs]
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def output_shapes(instance: Instance, values: Sequence[Any]) -> list[tuple[int, ...]]:
    """The sizes of fresh arrays, from the arguments at hand."""
    from tessera.ir.common.attributes import symbols_of

    function = instance.module.body.block.first_op
    assert function is not None
    shapes: Any = function.properties["shapes"]
    environment = ShapeEnvironment()
    for index, (value, shape) in enumerate(zip(values, shapes, strict=False)):
        if isinstance(value, Tensor):
            for axis, (expected, actual) in enumerate(zip(shape.data, value.shape, strict=True)):
                environment.unify(expected, actual, Origin(f"argument {instance.paths[index]}, axis {axis}", None))
    sizes = environment.sizes
    for shape, _ in instance.outputs:
        if missing := symbols_of(shape) - sizes.keys():
            raise ShapeError(f"the size {', '.join(sorted(missing))} of a result is not known from the arguments")
    return [tuple(dim(one).evaluate(sizes) for one in shape) for shape, _ in instance.outputs]


def _checking() -> AbstractContextManager[None]:
    """The checks that the knob asks for, besides those that are asked for around the call."""
    names, around = knobs.checks.value, asked()
    if not names:
        return nullcontext()
    wanted = NumericChecks(
        bounds="bounds" in names, nonfinite="nan" if "nan" in names else False, unwritten="unwritten" in names
    )
    return checking(wanted.beside(around.checks), trace=around.trace)


def _empty(shape: Sequence[int], dtype: DType) -> Any:
    return np.zeros(tuple(shape), dtype.storage)
