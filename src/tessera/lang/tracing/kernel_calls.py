"""A user's kernel called inside of a traced function: it is traced itself, and becomes a call in the graph.

Sizes that the kernel asks for are asked of the function's arguments. Arrays that a kernel fills are left out of the
call: their shapes follow from annotations, and they are what the call gives.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tessera.dtypes.types import DType
from tessera.errors import CompileError, DtypeError, EffectError, ShapeError
from tessera.lang.tracing import primitives
from tessera.lang.tracing.effects import allow
from tessera.lang.tracing.graph_modules import dialect, types
from tessera.lang.tracing.sizes import plain
from tessera.lang.tracing.values import Traced, current, shown
from tessera.runtime.tensor.tensor import Tensor
from tessera.shapes.annotations import TensorType
from tessera.shapes.expr import Size, dim, size
from tessera.transforms.core.facts import FactKind

if TYPE_CHECKING:
    from xdsl.ir import SSAValue

    from tessera.ir.tile.dialect import FuncOp
    from tessera.tile.calls.function import Kernel
    from tessera.tile.calls.instance import Instance

_SIZE = re.compile(r"arg(\d+)\.size\[(\d+)\]")


@dataclass(frozen=True, slots=True, eq=False)
class _Described:
    """An argument as annotations are checked against."""

    shape: tuple[Size, ...]
    dtype: DType


def call_kernel(kernel: Kernel, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Writes the call of a kernel on traced values; gives its results."""
    given, static, filled = _arguments(kernel, args, kwargs)
    stands = {name: _stand_in(name, value) for name, value in given.items()}
    instance = kernel.traced({**stands, **{name: _tensor(one) for name, one in filled.items()}}, static)
    operands = {name: value for name, value in given.items() if isinstance(value, Traced)}
    _ask(instance, operands)
    function = _function(kernel, instance)
    values = [_passed(given[path]) for path in instance.paths if path in given]
    results = _written(kernel, function, values, list(filled.values()), list(operands.values()))
    if not results:
        raise EffectError(
            f"kernel {kernel.__name__} gives nothing, so that calling it in a jitted function has no use",
            hint="return tiles from it, or mark what it fills with Out",
        )
    return results[0] if len(results) == 1 else tuple(results)


def _arguments(
    kernel: Kernel, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any], dict[str, _Described]]:
    """Traced values and numbers by name, static values, and the types of what the kernel fills."""
    signature = kernel.signature
    try:
        bound = signature.bind_partial(*args, **kwargs)
    except TypeError as error:
        raise CompileError(f"{kernel.__name__}: {error}", hint=f"it takes {signature}") from None
    bound.apply_defaults()
    given: dict[str, Any] = {}
    static: dict[str, Any] = {}
    for name, parameter in signature.parameters.items():
        value = bound.arguments.get(name, parameter.empty)
        if parameter.kind is parameter.KEYWORD_ONLY:
            static[name] = value
        elif name in kernel.outputs:
            if value is not parameter.empty:
                raise EffectError(
                    f"kernel {kernel.__name__} fills '{name}', and in a jitted function arrays are values",
                    hint=f"leave {name} out: the call gives what the kernel fills",
                )
        elif value is parameter.empty:
            raise CompileError(f"{kernel.__name__}: argument '{name}' is missing", hint=f"it takes {signature}")
        else:
            given[name] = value if isinstance(value, bool | int | float) else _array(primitives.lift(value))
    return given, static, _filled(kernel, given)


def _array(value: Traced) -> Traced:
    if value.weak:
        raise DtypeError(
            "a number that is an argument of the jitted function cannot be passed to a kernel as a number",
            shapes=shown(value),
            story=value.history.lines(),
            hint="make it static (static_argnames), or pass an array without axes",
        )
    return value


def _filled(kernel: Kernel, given: Mapping[str, Any]) -> dict[str, _Described]:
    """The types of the arrays that a kernel fills, from its annotations and the arguments' sizes."""
    annotations = kernel.annotations
    described = {
        name: _Described(value.sizes, value.dtype) for name, value in given.items() if isinstance(value, Traced)
    }
    environment = annotations.bind(described)
    found: dict[str, _Described] = {}
    for name in kernel.outputs:
        written = annotations.parameters[name]
        if not isinstance(written, TensorType) or written.any_leading or written.dtype is None:
            raise ShapeError(
                f"kernel {kernel.__name__} fills '{name}', whose shape and dtype its annotation does not tell",
                span=annotations.span(name),
                hint='annotate it with sizes of other arguments: Out[KTile["N", f32]]',
            )
        sizes = tuple(size(environment.resolve(one)) for one in written.dims)
        known = {symbol for value in described.values() for one in value.shape for symbol in dim(one).symbols}
        if loose := {symbol for one in sizes for symbol in dim(one).symbols} - known:
            names = ", ".join(sorted(loose))
            raise ShapeError(
                f"kernel {kernel.__name__} fills '{name}' of {written}, and no argument tells {names}",
                span=annotations.span(name),
                hint="use sizes of other arguments in the annotation",
            )
        found[name] = _Described(sizes, written.dtype)
    return found


def _stand_in(name: str, value: Any) -> Any:
    """The arguments that the kernel is traced with: arrays of the sizes at hand, without elements."""
    return _tensor(_Described(value.sizes, value.dtype)) if isinstance(value, Traced) else value


def _tensor(described: _Described) -> Tensor:
    numbers = current().sizes.numbers
    shape: list[int] = []
    for one in described.shape:
        if not isinstance(one, int) and (numbers is None or not one.symbols <= numbers.keys()):
            raise ShapeError(
                f"a kernel is traced for numbers, and the size {one} has none here",
                hint="check the function for arrays, or for types without symbols",
            )
        shape.append(dim(one).evaluate(numbers or {}))
    array = np.broadcast_to(np.zeros((), described.dtype.storage), tuple(shape))
    return Tensor.wrap(array, described.dtype)


def _ask(instance: Instance, operands: Mapping[str, Traced]) -> None:
    """Adds the dependencies of the kernel's program to those of the function."""
    sizes = current().sizes
    for atom in instance.guards:
        found = _SIZE.fullmatch(atom.subject)
        if atom.kind is not FactKind.SIZE or found is None:
            continue
        path = instance.paths[int(found[1])]
        if path in operands:
            one = operands[path].sizes[int(found[2])]
            if not isinstance(one, int):
                sizes.number(plain(one))


def _function(kernel: Kernel, instance: Instance) -> FuncOp:
    """The kernel's tile function, once in the module for equal programs."""
    from tessera.ir.structural_hash import structural_hash
    from tessera.ir.tile import dialect as tile
    from tessera.tile.calls.levels import returning

    trace = current()
    key = ("kernel", structural_hash(instance.module))
    if key not in trace.kept:
        function = returning(instance)
        assert isinstance(function, tile.FuncOp)
        used = {op.sym_name.data for op in trace.beside if isinstance(op, tile.FuncOp)}
        name, number = function.sym_name.data, 1
        while function.sym_name.data in used or function.sym_name.data == "main":
            number += 1
            from xdsl.dialects.builtin import StringAttr

            function.properties["sym_name"] = StringAttr(f"{name}_{number}")
        trace.beside.append(function)
        trace.kept[key] = function
    return trace.kept[key]


def _passed(value: Any) -> SSAValue:
    if isinstance(value, Traced):
        return value.value
    from xdsl.dialects import arith
    from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr, f32, i1

    if isinstance(value, bool):
        attribute: Any = IntegerAttr(int(value), i1)
    elif isinstance(value, int):
        attribute = IntegerAttr(value, IndexType())
    else:
        attribute = FloatAttr(value, f32)
    return primitives.write(arith.ConstantOp(attribute)).results[0]


def _written(
    kernel: Kernel,
    function: FuncOp,
    values: Sequence[SSAValue],
    filled: Sequence[_Described],
    operands: Sequence[Traced],
) -> list[Traced]:
    from tessera.ir.common.effects import MEMORY, effects_within
    from tessera.ir.common.schedule_attributes import ConfigAttr
    from tessera.ir.graph.kernel_calls import result_types
    from tessera.tile.calls.levels import config_of

    known = [types.GraphTensorType.of(one.shape, one.dtype.base) for one in filled]
    inferred = result_types(function, [*(value.type for value in values), *known])
    results = [*known, *inferred[len(known) :]]
    for effect in effects_within(op for op in function.body.walk() if not op.regions) or ():
        if effect.resource != MEMORY:
            allow(effect.resource.name(), f"kernel {kernel.__name__}")
    call = dialect.CallKernelOp(function.sym_name.data, values, results, config=ConfigAttr(config_of(kernel.schedule)))
    primitives.write(call)
    return [primitives.result_of(kernel.__name__, result, operands) for result in call.results]
