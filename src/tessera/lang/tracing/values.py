"""Values and traces: what a function's arguments are while it is traced, and the program that grows meanwhile.

Nothing here imports the IR: `primitives` writes it. A `Traced` stands for a tensor whose elements are not known yet.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol, TypeAlias

import numpy as np

from tessera import knobs
from tessera.dtypes.types import DType
from tessera.errors import EffectError, ShapeError, TesseraError
from tessera.lang.operator_registry import METHODS
from tessera.lang.tracing.index_ranges import IndexRange
from tessera.lang.tracing.sizes import Sizes, TracedSize, traced_shape
from tessera.runtime.device.device import Device
from tessera.runtime.tensor.operators import OPERATORS, ROWS_OF_NUMPY, rounded, takes
from tessera.runtime.tensor.tensor import Tensor, telling_reads
from tessera.shapes.expr import Size, format_shape
from tessera.shapes.history import ShapeHistory

if TYPE_CHECKING:
    from xdsl.ir import Block, Operation, SSAValue


class Copied(NamedTuple):
    """An array that was copied to another device, or read by Python, and what was in it."""

    source: np.ndarray[Any, np.dtype[Any]] | Tensor
    elements: bytes

    @staticmethod
    def of(source: np.ndarray[Any, Any] | Tensor) -> Copied:
        return Copied(source, _elements(source))

    def is_same(self) -> bool:
        return _elements(self.source) == self.elements


def _elements(source: np.ndarray[Any, Any] | Tensor) -> bytes:
    return (source.cpu().numpy() if isinstance(source, Tensor) else source).tobytes()


class Writers(NamedTuple):
    """The functions that write ops for methods of traced values; their modules are written over this one."""

    elementwise: Callable[..., Traced]
    """Python's operators: `arithmetic.elementwise`."""
    call_kernel: Callable[..., object]
    """Calls of kernels: `kernel_calls.call_kernel`."""


class Trace:
    """One function while it is traced.

    `block` is where ops go now: the function's own, or that of a branch or a loop. `effects` are those that the
    function is found to have. Arrays that the code reaches from outside become arguments behind the given ones.
    """

    def __init__(self, name: str, block: Block, sizes: Sizes, device: Device, writers: Writers) -> None:
        self.name = name
        self.writers = writers
        self.body = block
        self.block = block
        self.around = [block]
        self.sizes = sizes
        self.device = device
        self.effects: dict[str, None] = {}
        self.hidden: dict[int, tuple[Tensor, Traced]] = {}
        self.copied: list[Copied] = []
        self.beside: list[Operation] = []
        """Ops beside the function in its module: kernels, and slots of state."""
        self.kept: dict[Any, Any] = {}
        """Values that parts of the language keep while the function is traced, by their keys."""
        self.index_ranges: list[IndexRange] = []
        """The ranges of arguments that are indices."""
        self.replaced: dict[SSAValue, SSAValue] = {}
        """Values that were computed in another way later: those who hold one mean the other."""
        self.derived = 0
        """How many functions around are differentiated: kernels have no derivatives."""
        self.ends: list[Callable[[], None]] = []
        """What is done once all is traced."""
        self.closed = False

    def read(self, tensor: Tensor) -> None:
        """Notes that Python has the elements of a tensor from outside: what it makes of them is part of the program."""
        if all(one.source is not tensor for one in self.copied):
            with telling_reads(_ignore_read):
                self.copied.append(Copied.of(tensor))

    @contextmanager
    def within(self, block: Block) -> Generator[None]:
        """Ops go to another block meanwhile."""
        before, self.block = self.block, block
        self.around.append(block)
        try:
            yield
        finally:
            self.around.pop()
            self.block = before

    @contextmanager
    def writing(self, block: Block, values: Sequence[SSAValue]) -> Generator[None]:
        """Ops go to a block that may use these values, and all that lie around them, meanwhile."""
        before, around = self.block, self.around
        seen: dict[Block, None] = {}
        for value in values:
            place: Any = value.owner
            place = place if hasattr(place, "ops") else place.parent_block()
            while place is not None:
                seen[place] = None
                place = None if place.parent_op() is None else place.parent_op().parent_block()
        self.block, self.around = block, [*around, *seen, block]
        try:
            yield
        finally:
            self.block, self.around = before, around

    def now(self, value: SSAValue) -> SSAValue:
        """What stands for a value now."""
        while value in self.replaced:
            value = self.replaced[value]
        return value

    def sees(self, value: SSAValue) -> bool:
        """Whether a value may be used where ops go now."""
        made_in = value.owner
        block = made_in.parent_block() if hasattr(made_in, "parent_block") and not hasattr(made_in, "ops") else made_in
        return any(block is one for one in self.around)


def _ignore_read(_: Tensor) -> None:
    pass


_current: ContextVar[Trace | None] = ContextVar("trace", default=None)
current_or_none: Callable[[], Trace | None] = _current.get


def current() -> Trace:
    """The trace at work."""
    found = _current.get()
    if found is None:
        raise EffectError(
            "a traced value is used where nothing is traced",
            hint="values of a jitted function live while it is traced: return them, do not keep them elsewhere",
        )
    return found


@contextmanager
def tracing(trace: Trace) -> Generator[Trace]:
    """Primitives write into `trace` meanwhile."""
    token = _current.set(trace)
    try:
        with telling_reads(trace.read), knobs.deciding_too():
            yield trace
    finally:
        trace.closed = True
        _current.reset(token)


def _operator(fn: str) -> Callable[[Any, Any], Any]:
    """Python's operator `traced ∘ other` for a row of the elementwise table."""
    return lambda traced, other: _elementwise(traced, fn, traced, other)


def _reflected(fn: str) -> Callable[[Any, Any], Any]:
    """Python's operator `other ∘ traced`."""
    return lambda traced, other: _elementwise(traced, fn, other, traced)


def _refusing(what: str, instead: str) -> Callable[..., NoReturn]:
    """A method that needs elements."""

    def method(self: Traced, *_given: object, **_options: object) -> NoReturn:
        self.refuse(what, instead)

    return method


def _of_one(fn: str) -> Callable[[Any], Any]:
    """Python's operator `∘ traced`."""
    return lambda traced: _elementwise(traced, fn, traced)


class Traced:
    """A tensor in a trace: its type is known, its elements are not.

    `weak` says that it came from a Python number, which takes the type of the tensors that it meets.
    """

    __slots__ = ("__weakref__", "dtype", "history", "sizes", "trace", "value", "weak")
    __traced__ = True  # tensors leave operators with such values to them

    def __init__(
        self,
        value: SSAValue,
        sizes: tuple[Size, ...],
        dtype: DType,
        history: ShapeHistory,
        trace: Trace,
        *,
        weak: bool = False,
    ) -> None:
        self.value = value
        self.sizes = sizes
        """The sizes as rules take them; `shape` is for code that asks questions."""
        self.dtype = dtype
        self.history = history
        self.trace = trace
        self.weak = weak

    @property
    def shape(self) -> tuple[Any, ...]:
        return traced_shape(self.sizes, self.trace.sizes)

    @property
    def ndim(self) -> int:
        return len(self.sizes)

    @property
    def size(self) -> Any:
        count: Any = 1
        for one in self.shape:
            count = count * one
        return count

    @property
    def device(self) -> Device:
        return self.trace.device

    def __repr__(self) -> str:
        return f"Traced({format_shape(self.sizes)}, {self.dtype})"

    def __len__(self) -> int:
        if not self.sizes:
            raise ShapeError("a tensor without axes has no length", hint="use the value itself")
        return int(self.shape[0])

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))

    def refuse(self, what: str, instead: str) -> NoReturn:
        """Says that elements are not known yet, and what to do instead."""
        raise EffectError(
            f"{what} needs the elements of a traced value, which are not known while the function is traced",
            shapes=[f"{format_shape(self.sizes)} of {self.dtype}"],
            story=self.history.lines(),
            hint=instead,
        )

    __bool__ = _refusing("a Python condition", "use ts.where to choose elements, ts.cond to choose what runs")
    __int__ = _refusing("int()", "compute with the tensor, or make the argument static")
    __float__ = _refusing("float()", "compute with the tensor, or make the argument static")
    __contains__ = _refusing("a Python condition", "use ts.any(x == value)")
    __index__ = _refusing("a Python index", "index with the tensor itself, or make the argument static")
    item = _refusing("item()", "return the tensor, and take its element outside")
    tolist = _refusing("tolist()", "return the tensor, and list its elements outside")
    numpy = _refusing("numpy()", "use the functions of tessera, or return the tensor")
    __array__ = _refusing("a NumPy function", "use the function of the same name in tessera")

    def __array_ufunc__(
        self, function: Callable[..., object], method: str, *operands: object, **options: object
    ) -> object:
        """NumPy's elementwise functions that are operators here; others need elements, and are refused."""
        name = function.__name__
        row = ROWS_OF_NUMPY.get(name)
        found = OPERATORS.numpy_function(function) if row is None else partial(_elementwise, self, row)
        if found is None or method != "__call__" or options:
            self.refuse(f"np.{name}", "use the function of tessera: it works on traced values")
        return found(*operands)

    def __array_function__(
        self, function: Callable[..., object], types: object, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> object:
        found = OPERATORS.numpy_function(function)
        result = found(*args, **kwargs) if found is not None and takes(found, args, kwargs) else NotImplemented
        if result is NotImplemented:
            self.refuse(f"np.{function.__name__}", "use the function of tessera: it works on traced values")
        return result

    def __format__(self, form: str) -> str:
        if form:
            self.refuse(f"the format {form!r}", "return the tensor and format it outside, or use ts.debug_print")
        return repr(self)

    def __setitem__(self, key: object, value: object) -> NoReturn:
        raise EffectError(
            "a traced value is assigned to in place: tensors in a jitted function are values",
            shapes=[f"{format_shape(self.sizes)} of {self.dtype}"],
            story=self.history.lines(),
            hint="make a new one: x = x.at[...].set(...)",
        )

    def __getitem__(self, key: object) -> Any:
        return OPERATORS.method("__getitem__")(self, key)

    def __matmul__(self, other: object) -> Any:
        return OPERATORS.method("__matmul__")(self, other)

    def __rmatmul__(self, other: object) -> Any:
        return OPERATORS.method("__matmul__")(other, self)

    def call_kernel(self, kernel: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """A kernel called with this value becomes a call in the graph."""
        return self.trace.writers.call_kernel(kernel, args, kwargs)

    # Python's operators

    __add__, __radd__ = _operator("add"), _reflected("add")
    __sub__, __rsub__ = _operator("sub"), _reflected("sub")
    __mul__, __rmul__ = _operator("mul"), _reflected("mul")
    __truediv__, __rtruediv__ = _operator("div"), _reflected("div")
    __floordiv__, __rfloordiv__ = _operator("floordiv"), _reflected("floordiv")
    __mod__, __rmod__ = _operator("rem"), _reflected("rem")
    __pow__, __rpow__ = _operator("pow"), _reflected("pow")
    __and__, __rand__ = _operator("and"), _reflected("and")
    __or__, __ror__ = _operator("or"), _reflected("or")
    __xor__, __rxor__ = _operator("xor"), _reflected("xor")
    __lshift__, __rlshift__ = _operator("shl"), _reflected("shl")
    __rshift__, __rrshift__ = _operator("shr"), _reflected("shr")

    __lt__, __le__ = _operator("lt"), _operator("le")
    __gt__, __ge__ = _operator("gt"), _operator("ge")
    __eq__, __ne__ = _operator("eq"), _operator("ne")
    __hash__ = None  # pyright: ignore[reportAssignmentType]  (as for tensors: comparing is elementwise)

    __neg__, __abs__, __invert__ = _of_one("neg"), _of_one("abs"), _of_one("not")

    def __pos__(self) -> Traced:
        return self

    def __divmod__(self, other: object) -> tuple[Traced, Traced]:
        return self // other, self % other

    def __rdivmod__(self, other: object) -> tuple[Traced, Traced]:
        return other // self, other % self

    def __round__(self, digits: int | None = None) -> Traced:
        return rounded(self, digits)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise OPERATORS.missing("a traced tensor", name)
            return OPERATORS.attribute(self, "a traced tensor", name)

        def __dir__(self) -> list[str]:
            return sorted({*super().__dir__(), *METHODS, "T", "at", "mT", "t", "view"})


class SupportsDLPack(Protocol):
    """An array of another library: NumPy, torch, JAX."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...


Array: TypeAlias = "Tensor | Traced | SupportsDLPack | bool | int | float"
"""A parameter of an operator that is a tensor. A number for it is an argument; for other parameters it is static."""


def is_operand(value: object) -> bool:
    """Whether a value may stand beside a tensor in an expression."""
    return isinstance(value, Traced | TracedSize | bool | int | float) or is_array(value)


def is_array(value: object) -> bool:
    """Whether a value is a tensor, or an array of another library."""
    return isinstance(value, Tensor) or (
        value.__class__ not in (bool, int, float)
        and not isinstance(value, type)
        and (hasattr(value, "__dlpack__") or hasattr(value, "__array__"))
    )


def _elementwise(traced: Traced, fn: str, *operands: object) -> Any:
    """A row of the elementwise table; NotImplemented, so that Python asks the other value, where one is no operand."""
    if not all(map(is_operand, operands)):
        return NotImplemented
    return traced.trace.writers.elementwise(fn, *operands)


def shown(*values: Traced) -> tuple[str, ...]:
    """Types as errors show them."""
    return tuple(f"{format_shape(value.sizes)} of {value.dtype}" for value in values)


def stories(operands: Sequence[Traced]) -> tuple[str, ...]:
    """How values came to their shapes, each step once."""
    return tuple(dict.fromkeys(line for operand in operands for line in operand.history.lines()))


@contextmanager
def telling(*operands: Traced) -> Generator[None]:
    """An error about operands shows their types, and tells how each came to its shape."""
    try:
        yield
    except TesseraError as error:
        error.shapes = error.shapes or shown(*operands)
        error.story = error.story or stories(operands)
        raise
