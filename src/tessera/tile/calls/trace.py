"""Tracing one kernel for given arguments: run its rewritten code on traced values, and finish the program."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from functools import partial
from numbers import Number
from types import FunctionType
from typing import Any, Protocol

from xdsl.dialects.builtin import ModuleOp

from tessera.cached_property import cached_property
from tessera.dtypes.types import DType, bool_, f32
from tessera.errors import CompileError, DtypeError, ShapeError, SourceSpan, TesseraError
from tessera.internal_errors import boundary
from tessera.ir import text
from tessera.runtime.tensor.creation import asarray
from tessera.runtime.tensor.tensor import Tensor
from tessera.shapes.annotations import TensorType
from tessera.shapes.expr import Shape, Size, dim, size
from tessera.tile.calls.arguments import kinds_of, plain
from tessera.tile.calls.attributes import Attributes
from tessera.tile.calls.grids import GridFunction, GridOfStores, grid_of
from tessera.tile.calls.instance import Instance
from tessera.tile.calls.overlapping import say_overlapping
from tessera.tile.calls.python_errors import compile_error
from tessera.tile.language.call_chain import Position, span_with_callers
from tessera.tile.language.context import current_context
from tessera.tile.language.control import rewritten
from tessera.tile.language.kernel_code import is_kernel_module
from tessera.tile.language.schedule import Schedule
from tessera.tile.language.tile_parameters import load_tiles
from tessera.tile.language.tracer import Tracer
from tessera.tile.language.values import Tile, Undefined, as_tuple, tracing
from tessera.transforms.core.canonicalize import Canonicalize
from tessera.transforms.core.common_subexpressions import CommonSubexpressions
from tessera.transforms.core.facts import Fact, FactKind, Facts, fact

_SCALARS: dict[type, DType | None] = {bool: bool_, int: None, float: f32}


class Traceable(Protocol):
    """The parts of a kernel that its programs depend on."""

    __name__: str
    schedule: Schedule
    given_grid: tuple[int, ...] | GridFunction | GridOfStores | None
    matched: bool
    overlapping: tuple[tuple[str, ...], ...]

    @property
    def function(self) -> FunctionType: ...

    @cached_property
    def tiles(self) -> Mapping[str, SourceSpan | None]: ...

    @cached_property
    def outputs(self) -> frozenset[str]: ...

    def annotation(self, name: str) -> TensorType | None: ...


def trace(kernel: Traceable, given: Mapping[str, Any], static: Mapping[str, Any]) -> Instance:
    """The program of a kernel for one schedule; what it asked about the arguments becomes its guards."""
    given_grid = kernel.given_grid
    work = Tracer(kernel.__name__, kernel.schedule, given=given_grid if isinstance(given_grid, tuple) else None)
    seen: list[Any] = []

    def add(path: str, value: Any) -> Any:
        value = plain(value)
        if hasattr(value, "__dlpack__") or hasattr(value, "__array__"):
            tensor = asarray(value)
            annotated = kernel.annotation(path)
            shape: Shape = _symbols_for(path, tensor.ndim)
            if annotated is not None and not annotated.any_leading:
                shape = tuple(_plain_size(one) for one in annotated.dims)
            dtype = annotated.dtype if annotated is not None and annotated.dtype is not None else tensor.dtype
            seen.append(tensor)
            work.facts = work.recorder.facts = _facts_of(seen, matched=kernel.matched)
            return work.add_view(path, tensor.ndim, dtype, shape, filled=path in kernel.outputs)
        if path in kernel.outputs:
            raise DtypeError(
                f"argument {path}: {type(value).__name__} is not an array, and Out says that the kernel fills one",
                hint="pass an array, or leave Out away",
            )
        if type(value) in (bool, int, float):
            seen.append(value)
            return work.add_scalar(path, _scalar_type(path, value))
        if value is None or isinstance(value, str | bytes | tuple | list | dict | set):
            _scalar_type(path, value)
        if isinstance(value, Number) and not isinstance(value, Enum):  # one of these may be there for its attributes
            _scalar_type(path, value)
        return Attributes(work, path, value, add)

    arguments = {name: add(name, value) for name, value in given.items()}
    with tracing(work):
        seen_by_grid = arguments | dict(static)
        arguments |= load_tiles(work, kernel.tiles, arguments)
        function = rewritten(kernel.function)
        work.code = function.__code__
        work.source = SourceSpan(work.code.co_filename, work.code.co_firstlineno)
        result = _run(function, arguments, static)
        work.finishing = work.ending or work.source
        try:
            outputs = _store_results(work, result)
        except TesseraError as error:
            raise error.at(work.ending) from None
        traced = work.finish(len(outputs), grid_of(work, given_grid, seen_by_grid))
    say_overlapping(traced, [argument.path for argument in work.arguments], kernel.overlapping)
    module = ModuleOp([traced])
    with boundary(kernel.__name__, "the passes after tracing", partial(text.write, module)):
        text.verify(module)
        context = text.new_context()
        for step in (Canonicalize(), CommonSubexpressions()):
            step.apply(context, module)
    inputs = work.arguments[: len(work.arguments) - len(outputs)]
    paths = tuple(argument.path for argument in inputs)
    kinds, guards = kinds_of(seen), work.recorder.guards
    return Instance(module, kernel.__name__, paths, kinds, tuple(outputs), guards, kernel.schedule, work.row_width)


def _facts_of(values: Sequence[Any], *, matched: bool = False) -> Facts:
    """The sizes of concrete arguments, as facts a trace may ask for; and which are those of the first array."""
    found: list[Fact] = []
    arrays = [(f"arg{index}", value.shape) for index, value in enumerate(values) if isinstance(value, Tensor)]
    for name, shape in arrays:
        found += [Fact(FactKind.SIZE, f"{name}.size[{axis}]", size) for axis, size in enumerate(shape)]
    for name, shape in arrays[1:] if matched else ():
        (first, sizes), pairs = arrays[0], enumerate(zip(shape, arrays[0][1], strict=False))
        found += [
            fact(FactKind.EQUAL, f"{first}.size[{axis}]", f"{name}.size[{axis}]")
            for axis, (size, other) in pairs
            if size == other and len(shape) == len(sizes)
        ]
    return Facts(found)


def _scalar_type(name: str, value: Any) -> DType | None:
    """The type of a scalar argument: positions for int, f32 for float, i1 for bool."""
    if type(value) not in _SCALARS:
        if isinstance(value, Number):
            kind = next((one.__name__ for one in (int, float) if isinstance(value, one)), "float")
            parts = f"pass its parts, {name}.real and {name}.imag" if isinstance(value, complex) else None
            raise DtypeError(
                f"argument {name}: {value!r} is of type {type(value).__name__}, and kernels take numbers of the types "
                "bool, int and float alone",
                hint=parts or f"pass {kind}({name}), or make it keyword-only if its value is to be part of the program",
            )
        raise DtypeError(
            f"argument {name}: {type(value).__name__} is neither an array nor a number",
            hint="pass arrays, numbers, or an object whose attributes are arrays; make other values keyword-only",
        )
    return _SCALARS[type(value)]


def _symbols_for(path: str, rank: int) -> Shape:
    """Names for the sizes of an argument without annotation."""
    return tuple(dim(f"{path.replace('.', '_')}_{axis}") for axis in range(rank))


def _run(function: Callable[..., Any], arguments: Mapping[str, Any], static: Mapping[str, Any]) -> Any:
    """Runs the kernel's code on traced values; Python's own errors in it are raised like every other."""
    try:
        return function(*arguments.values(), **static)
    except TesseraError as error:
        span = _place(error)
        if span is not None and error.span == replace(span, caller=None):
            error.span = span
        raise
    except Exception as error:
        raise compile_error(error, _place(error)) from error


def _place(error: Exception) -> SourceSpan | None:
    """The innermost expression of the user's that an error went through, with the calls that led there."""
    positions: list[Position] = []
    step = error.__traceback__
    while step is not None:
        if is_kernel_module(step.tb_frame.f_globals.get("__name__", "")):
            positions.append((step.tb_frame.f_code, step.tb_lasti))
        step = step.tb_next
    return span_with_callers(positions[::-1])


def _plain_size(given: Size) -> Size:
    """An annotated size as one symbol: in the program, `B*H` is a size of its own, called B_H.

    That products and sums agree with their parts is checked against the annotations on every call.
    """
    if isinstance(given, int) or str(given).isidentifier():
        return given
    return dim(re.sub(r"\W+", "_", str(given)).strip("_"))


def _store_results(work: Tracer, result: Any) -> list[tuple[Shape, DType]]:
    """Returned tiles go to fresh arrays of the driving argument's shape, at the rows of this program instance."""
    if result is None:
        return []
    tiles = as_tuple(result)
    outputs: list[tuple[Shape, DType]] = []
    for number, value in enumerate(tiles):
        if isinstance(value, Undefined):
            value.refuse()
        if not isinstance(value, Tile):
            raise CompileError(
                f"a kernel returns tiles, got {value!r}", hint="return tiles, or store and return nothing"
            )
        context = current_context(work)
        driver = work.driver
        assert driver is not None
        argument = work.argument_of(driver)
        leading, rank = argument.shape[:-2], len(argument.shape)
        rows = argument.shape[-2] if rank > 1 else argument.shape[0]
        if value.ndim not in (1, 2) or value.shape[0] != context.m or (rank == 1 and value.ndim != 1):
            raise ShapeError(
                f"a returned tile holds this program instance's {context.m} rows, got {value}",
                hint="return tiles of T.m rows, or use tile.store",
            )
        shape = (*leading, rows) if value.ndim == 1 else (*leading, rows, value.shape[1])
        shape = tuple(size(dim(one).substitute(work.constants)) for one in shape)
        name = "result" if len(tiles) == 1 else f"result{number}"
        view = work.add_view(name, len(shape), value.dtype.base, shape)
        indices = context.indices_for(len(leading))
        target = work.part(view, dict(enumerate(indices)))
        work.store(target, value, [context.row_start] if value.ndim == 1 else [context.row_start, 0])
        outputs.append((shape, value.dtype.base))
    return outputs
