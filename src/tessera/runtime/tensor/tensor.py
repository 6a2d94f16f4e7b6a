"""The tensor: typed elements on a device, with NumPy's views, exchanged with other libraries without copies."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from operator import index
from typing import TYPE_CHECKING, Any, Self, SupportsIndex, TypeAlias, cast, final

import numpy as np

from tessera.dtypes import casting
from tessera.dtypes.promotion import as_dtype
from tessera.dtypes.types import BY_NAME, DType, Kind, f64, i8, u8
from tessera.errors import DeviceError, DtypeError, EffectError, ShapeError
from tessera.runtime.device.device import CPU, Buffer, Device, device, is_device_name
from tessera.runtime.device.memory import Array, address, aligned, aligned_copy
from tessera.runtime.device.ownership import buffer_of
from tessera.runtime.tensor import assignment, dlpack, indexing
from tessera.runtime.tensor.dlpack import ExchangeError
from tessera.runtime.tensor.indexing import Key
from tessera.runtime.tensor.interface import DTypeLike, asarray
from tessera.runtime.tensor.meta import Meta, alignment_of, may_overlap
from tessera.runtime.tensor.operators import (
    OPERATORS,
    ROWS_OF_NUMPY,
    Operand,
    Scalar,
    binary,
    reflected,
    rounded,
    row_on,
    takes,
    traced_in,
    unary,
)
from tessera.runtime.tensor.printing import show, show_as_html
from tessera.runtime.tensor.tracking import histories, remember, tracked
from tessera.runtime.tensor.transfer import transfer
from tessera.shapes import rules
from tessera.shapes.annotations import TensorType, annotation
from tessera.shapes.expr import format_shape
from tessera.tracebacks import trim

if TYPE_CHECKING:  # the methods that operators are, for tools that read sources
    from tessera.runtime.tensor.operator_methods import OperatorMethods  # pyright: ignore[reportMissingModuleSource]
else:
    OperatorMethods = object

Shape: TypeAlias = tuple[int, ...]
Sizes: TypeAlias = SupportsIndex | Sequence[SupportsIndex]

_new = object.__new__
_equal, _unequal = binary("eq"), binary("ne")


class _Operator:
    """A method or property of tensors that an operator of the language is: they load when one is first asked for."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, tensor: Any, owner: type) -> Any:
        if tensor is not None:
            return OPERATORS.attribute(tensor, "'Tensor' object", self.name)
        methods, properties = OPERATORS.surface()
        try:
            return properties.get(self.name) or methods[self.name]
        except KeyError:
            raise OPERATORS.missing("type object 'Tensor'", self.name) from None


@final
class Tensor(OperatorMethods):
    """Elements of one dtype at strided addresses of one device. `Tensor["B", "S", bf16]` is its type annotation.

    Indexing, `reshape`, `permute` and their like give views on the same memory where they can; docs/runtime.md lists
    what shares and what copies. `Tensor(values)` copies; `asarray` shares where it can.
    """

    # `geometry` is an array at the tensor's address: on every device it knows shape and strides and makes views. Where
    # the host cannot reach the elements, it is a `DeviceArray`, which has no way to them.
    __slots__ = ("__weakref__", "_buffer", "device", "dtype", "geometry", "known_meta")

    # Arrays of other libraries leave operators with a tensor to the tensor, as those of NumPy do by `__array_ufunc__`.
    __array_priority__ = 100

    geometry: Array
    _buffer: Buffer | None
    device: Device
    dtype: DType
    known_meta: Meta | None

    def __new__(cls, values: object, dtype: DTypeLike | None = None, *, device: str | Device | None = None) -> Tensor:
        return cast(Tensor, asarray(values, dtype, device=device, copy=True))

    def __class_getitem__(cls, items: object) -> TensorType:
        return annotation("tensor", items)

    @classmethod
    def wrap(cls, array: Array, dtype: DType, device: Device = CPU, buffer: Buffer | None = None) -> Self:
        """A tensor on exactly this memory; `array` has the storage type of `dtype`."""
        self = _new(cls)
        self.geometry = array
        self.dtype = dtype
        self.device = device
        self._buffer = buffer
        self.known_meta = None
        remember(self)
        return self

    @classmethod
    def fresh(cls, array: Array, meta: Meta) -> Tensor:
        """A tensor on memory that is its own, and whose meta is known."""
        self = _new(cls)
        self.geometry = array
        self.dtype = meta.dtype
        self.device = meta.device
        self._buffer = None
        self.known_meta = meta
        if histories() is not None:
            remember(self)
        return self

    def _view(self, array: Array) -> Tensor:
        return Tensor.wrap(array, self.dtype, self.device, self._buffer)

    @property
    def meta(self) -> Meta:
        """Made when first asked for. Code that is written for calls reads the slot, several times as fast."""
        return self.known_meta or self._make_meta()

    def _make_meta(self) -> Meta:
        array, itemsize = self.geometry, self.geometry.itemsize
        strides = tuple([stride // itemsize for stride in array.strides])
        alignment = alignment_of(address(array) if array.size else 0)
        made = self.known_meta = Meta(self.dtype, array.shape, strides, self.device, alignment)
        return made

    def give_away(self) -> None:
        """Lets go of the memory for good: a later use of this tensor is an error that says so."""
        del self.geometry
        self.known_meta = self._buffer = None
        cast("Any", self).__class__ = _DONATED

    def __dir__(self) -> list[str]:
        return [name for name in object.__dir__(self) if name not in _HIDDEN]

    @property
    def shape(self) -> Shape:
        return self.geometry.shape

    @property
    def strides(self) -> tuple[int, ...]:
        """Per axis, the number of elements from one index to the next."""
        return self.meta.strides

    @property
    def ndim(self) -> int:
        return self.geometry.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.geometry.size

    @property
    def itemsize(self) -> int:
        return self.geometry.itemsize

    @property
    def nbytes(self) -> int:
        return self.geometry.nbytes

    @property
    def pointer(self) -> int:
        """The address of the first element, on the tensor's device."""
        return address(self.geometry)

    @property
    def writable(self) -> bool:
        return self.geometry.flags.writeable

    @property
    def buffer(self) -> Buffer:
        """The memory that this tensor is a view of."""
        if self._buffer is None:
            self._buffer = buffer_of(self.geometry, self.device)
        return self._buffer

    # Views

    @property
    @tracked
    def T(self) -> Tensor:  # noqa: N802  (the name of NumPy)
        if self.ndim != 2:
            raise ShapeError(
                f".T is for matrices, this tensor has {self.ndim} axes",
                shapes=[format_shape(self.shape)],
                hint="use .mT to transpose the last two axes, or permute",
            )
        return self._view(self.geometry.T)

    @property
    def mT(self) -> Tensor:  # noqa: N802  (the Array API's name)
        """The last two axes exchanged."""
        return self.transpose(-2, -1)

    @tracked
    def transpose(self, first: int = -2, second: int = -1, *others: int) -> Tensor:
        """Two axes exchanged, the last two unless others are named."""
        if others or isinstance(first, tuple):
            raise ShapeError(
                f"transpose exchanges two axes, got {(first, second, *others) if others else first}",
                hint="permute orders all axes: x.permute(2, 0, 1)",
            )
        axes = [rules.normalize_axis(axis, self.ndim, where="transpose") for axis in (first, second)]
        return self._view(self.geometry.swapaxes(*axes))

    @tracked
    def permute(self, *axes: Sizes) -> Tensor:
        """Axis i of the result is axis axes[i] of this tensor."""
        order = _integers(axes, "permute")
        rules.transpose(self.shape, order, where="permute")
        return self._view(self.geometry.transpose(order))

    @tracked
    def reshape(self, *shape: Sizes, copy: bool | None = None) -> Tensor:
        """The same elements in another shape: a view where strides allow it, else a copy.

        `copy=True` always copies, and `copy=False` never does: it is an error where no view is possible.
        """
        target = _integers(shape, "reshape")
        if math.prod(target) != self.size or min(target, default=0) < 0:  # -1 is what is left, and others do not fit
            target = cast(Shape, rules.reshape(self.shape, target))
        if copy:
            return self.copy().reshape(target, copy=False)
        try:
            return self._view(self.geometry.reshape(target, copy=False))
        except ValueError:
            if copy is None:
                return self.reshape(target, copy=True)
            raise ShapeError(
                f"no view of strides {self.strides} has this shape",
                shapes=[f"from {format_shape(self.shape)}", f"to {format_shape(target)}"],
                hint="leave copy=False out, or call .copy() first",
            ) from None

    def view_as(self, other: Tensor) -> Tensor:
        """A view in the shape of `other`; an error where a copy would be needed."""
        return self.reshape(other.shape, copy=False)

    @tracked
    def broadcast_to(self, *shape: Sizes) -> Tensor:
        """A read-only view that repeats axes of size 1, and the whole along new leading axes."""
        target = _integers(shape, "broadcast_to")
        if rules.broadcast(self.shape, target, where="broadcast_to") != target:
            raise ShapeError(
                "broadcast_to: a tensor can only grow",
                shapes=[f"from {format_shape(self.shape)}", f"to {format_shape(target)}"],
                hint="each axis must be 1 or have the size asked for, counted from the last axis",
            )
        return self._view(np.broadcast_to(self.geometry, target))

    @tracked
    def expand_dims(self, axis: int | tuple[int, ...]) -> Tensor:
        """A view with axes of size 1 put in at `axis`, counted in the result."""
        return self._view(self.geometry.reshape(cast(Shape, rules.expand_dims(self.shape, axis)), copy=False))

    @tracked
    def squeeze(self, axis: int | tuple[int, ...] | None = None) -> Tensor:
        """A view without `axis`, which must have size 1; without all such axes where none is named."""
        if axis is None:
            axis = tuple([index for index, count in enumerate(self.shape) if count == 1])
        rules.squeeze(self.shape, axis)
        return self._view(self.geometry.squeeze(axis))

    @tracked
    def as_strided(self, shape: Shape, strides: tuple[int, ...], offset: int = 0) -> Tensor:
        """A view of this tensor's memory with any strides, in elements, from `offset` elements after its first.

        It may reach whatever belongs to the same storage, and not a byte more. It is read-only where two indices
        might name one element.
        """
        if len(shape) != len(strides) or any(count < 0 for count in shape):
            raise ShapeError(
                f"as_strided: {shape} with strides {strides} is not a geometry",
                hint="give sizes of at least 0, and one stride per size",
            )
        reach = [(count - 1) * stride for count, stride in zip(shape, strides, strict=True)]
        start = self.pointer - self.buffer.pointer + offset * self.itemsize
        low = start + sum(step for step in reach if step < 0) * self.itemsize
        high = start + (sum(step for step in reach if step > 0) + 1) * self.itemsize
        if math.prod(shape) and not 0 <= low <= high <= self.buffer.nbytes:
            raise ShapeError(
                f"as_strided: the view would reach bytes {low} to {high} of a storage of {self.buffer.nbytes} bytes",
                shapes=[f"{format_shape(shape)}, strides {format_shape(strides)}, offset {offset}"],
                hint="use a smaller shape, strides or offset",
            )
        steps = tuple([stride * self.itemsize for stride in strides])
        array = self.buffer.array(self.dtype.storage, shape, steps, start if math.prod(shape) else 0)
        if not self.writable or may_overlap(shape, strides):
            array.flags.writeable = False
        return Tensor.wrap(array, self.dtype, self.device, self.buffer)

    @tracked
    def __getitem__(self, key: Key) -> Tensor:
        """A view for integers, slices, None and ...; a copy for integer and boolean arrays."""
        if traced_in(key):
            return OPERATORS.method("__getitem__")(self, key)
        parts, is_view = indexing.parts_of(key)
        if not is_view and self.device.is_accelerator:
            return OPERATORS.method("__getitem__")(self, indexing.for_device(key, parts, self.device))
        if not is_view:
            compiled = OPERATORS.compiled("__getitem__", indexing.selected(self.shape, parts))
            if compiled is not None:
                return compiled(self, parts)
        array = self.geometry if is_view else self.numpy()
        try:
            found = array[indexing.for_numpy(self.shape, parts)]
        except (IndexError, ValueError, TypeError) as problem:
            raise indexing.refusal(self.shape, problem) from None
        return self._view(found) if is_view else Tensor.wrap(aligned(found), self.dtype)

    def __setitem__(self, key: Key, value: Operand) -> None:
        """Store `value`, which broadcasts; its dtype must go into this one without changing a value."""
        try:
            assignment.assign(self, key, value)
        except Exception as error:
            trim(error)
            raise

    def __len__(self) -> int:
        if self.ndim == 0:
            raise ShapeError("a tensor without axes has no length", hint="use .item() for its value")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        return (self[index] for index in range(len(self)))

    # Copies and casts

    @tracked
    def copy(self) -> Tensor:
        """The same elements in C order in fresh memory of the same device."""
        array, buffer = transfer(self.geometry, self.device, self.device)
        return Tensor.wrap(array, self.dtype, self.device, buffer)

    @tracked
    def to(self, target: DTypeLike | Device, *, copy: bool = False, seed: int | None = None) -> Tensor:
        """This tensor as `target`, a dtype or a device; itself where it is that already, unless `copy`.

        A change of policy alone shares memory, unless stored elements differ under it. `seed` drives stochastic
        rounding.
        """
        if isinstance(target, Device) or (isinstance(target, str) and target not in BY_NAME and is_device_name(target)):
            return self._to_device(device(target), copy=copy)
        dtype = as_dtype(target)
        if stores_alike(dtype, self.dtype):
            same = self if dtype is self.dtype else Tensor.wrap(self.geometry, dtype, self.device, self._buffer)
            return same.copy() if copy else same
        if self.device.is_accelerator:
            return OPERATORS.method("__cast__")(self, dtype, seed)
        if seed is None and (compiled := OPERATORS.compiled("__cast__", self.size)) is not None:
            return compiled(self, dtype)
        array = casting.cast(self.numpy(), self.dtype, dtype, seed=seed)
        return Tensor.wrap(aligned(array), dtype)

    def _to_device(self, target: Device, *, copy: bool) -> Tensor:
        if target is self.device and not copy:
            return self
        if target is CPU and (listener := reader()) is not None:
            listener(self)
        array, buffer = transfer(self.geometry, self.device, target)
        return Tensor.wrap(array, self.dtype, target, buffer)

    def cpu(self) -> Tensor:
        """This tensor on the CPU."""
        return self._to_device(CPU, copy=False)

    def cuda(self, index: int = 0) -> Tensor:
        """This tensor on a CUDA device."""
        return self._to_device(Device("cuda", index), copy=False)

    # Values

    def numpy(self) -> Array:
        """The stored elements as a NumPy array that shares this memory."""
        if self.device is not CPU and not self.device.backend.host_addressable:
            raise DeviceError(
                f"the memory of {self.device} cannot be read by the host",
                shapes=[format_shape(self.shape)],
                hint="bring the tensor over first: .cpu()",
            )
        if (listener := reader()) is not None:
            listener(self)
        return self.geometry

    def values(self) -> Array:
        """The values on the host in a type that NumPy computes in itself; may share memory, may be a copy."""
        array, dtype = self.cpu().numpy(), self.dtype
        if dtype.policy.loss_scale is not None or (dtype.is_float and dtype.bits < 32):
            return casting.cast(array, dtype, f64)
        if dtype.is_integer and dtype.bits < 8:
            return array.astype((i8 if dtype.kind is Kind.INT else u8).storage)
        return array

    def item(self) -> Scalar:
        """The only element, as a Python scalar."""
        if self.size != 1:
            raise ShapeError(
                f"expected a tensor with one element, this one has {self.size}",
                shapes=[format_shape(self.shape)],
                hint="index it first, reduce it, or use .tolist()",
            )
        return self.values().item()

    def tolist(self) -> Any:
        """The values as nested lists of Python scalars."""
        return self.values().tolist()

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ShapeError(
                f"a condition takes one element, this tensor has {self.size}",
                shapes=[format_shape(self.shape)],
                hint="say which is meant: .any() or .all(); elements are chosen by ts.where",
            )
        return bool(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __index__(self) -> int:
        if not self.dtype.is_integer or self.ndim:
            raise DtypeError(
                f"expected an integer tensor without axes, this one is {self.dtype} with shape {self.shape}",
                hint="use int(...) to convert a value on purpose",
            )
        return int(self.item())

    def __contains__(self, value: object) -> bool:
        """Whether some element equals `value`, which broadcasts."""
        found: Any = self == value
        return found if isinstance(found, bool) else bool(found.any())

    def __round__(self, digits: int | None = None) -> Tensor:
        return rounded(self, digits)

    def __trunc__(self) -> int:
        return math.trunc(self.item())

    def __repr__(self) -> str:
        return show(self)

    _repr_html_ = show_as_html
    """A table for notebooks."""

    def __format__(self, form: str) -> str:
        """The only element in a number's format; without one, what `str` gives."""
        if not form:
            return str(self)
        if self.ndim:
            raise ShapeError(
                f"the format {form!r} is one of numbers, and this tensor has {self.ndim} axes",
                shapes=[format_shape(self.shape)],
                hint="format an element, x[0], or what a reduction makes of all of them",
            )
        return format(self.item(), form)

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (self.cpu().copy().numpy(), self.dtype, self.device)

    # Exchange

    def __array__(self, dtype: np.dtype[Any] | None = None, copy: bool | None = None) -> Array:
        self._check_plain("a NumPy array")
        array = self.numpy()
        if dtype is not None and dtype != array.dtype:
            if copy is False:
                raise ExchangeError(
                    f"an array of {dtype} cannot share the memory of a {self.dtype} tensor",
                    hint="leave copy=False or the dtype out",
                )
            return array.astype(dtype)
        return array.copy() if copy else array

    def __array_ufunc__(self, function: Any, method: str, *operands: Any, **options: Any) -> Any:
        """NumPy's elementwise functions are operators on tensors; those that are none here take arrays, and give them.

        With `out=` they write there, and give that.
        """
        if method == "__call__" and not options:
            row = ROWS_OF_NUMPY.get(function.__name__)
            if row is not None:
                return row_on(row, *operands)
            found = OPERATORS.numpy_function(function)
            if found is not None:
                return found(*operands)
        arrays = {name: _as_arrays(value) for name, value in options.items()}
        result = getattr(function, method)(*_as_arrays(operands), **arrays)
        out: Any = options.get("out")
        return result if out is None else out[0] if len(out) == 1 else out

    def __array_function__(self, function: Any, types: object, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """NumPy's functions of an operator's meaning are that operator; others take arrays, and give them."""
        found = OPERATORS.numpy_function(function)
        if found is not None and takes(found, args, kwargs):
            result = found(*args, **kwargs)
            if result is not NotImplemented:
                return result
        return function(*_as_arrays(args), **{name: _as_arrays(value) for name, value in kwargs.items()})

    @property
    def __array_interface__(self) -> dict[str, Any]:
        if self.device is not CPU or self.dtype.storage.isbuiltin != 1 or self.dtype.policy.loss_scale is not None:
            raise AttributeError(f"no array interface describes {self.dtype} on {self.device}")
        return self.geometry.__array_interface__

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if (
            not self.device.is_accelerator
            or self.dtype.storage.isbuiltin != 1
            or self.dtype.policy.loss_scale is not None
        ):
            raise AttributeError(f"no CUDA array interface describes {self.dtype} on {self.device}")
        return self.device.backend.export_array(self.geometry)

    def _check_plain(self, where: str) -> None:
        if self.dtype.policy.loss_scale is not None:
            raise ExchangeError(
                f"{self.dtype} stores multiples of its values, which {where} cannot say",
                hint=f"share the values with .to({self.dtype.base}), or take the stored elements with .numpy()",
            )

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A DLPack capsule of this memory: versioned for consumers that know DLPack 1.x, else of the old kind."""
        self._check_plain("DLPack")
        wanted = self.__dlpack_device__() if dl_device is None else (int(dl_device[0]), int(dl_device[1]))
        source = self
        if wanted != self.__dlpack_device__():
            if wanted != _CPU_IN_DLPACK or copy is False:
                raise ExchangeError(
                    f"memory of {self.device} cannot be shared as DLPack device {wanted}",
                    hint="copy the tensor to that device first: .to(...)",
                )
            source, stream = self.cpu(), None
        elif copy:
            source = self.copy()
        backend = source.device.backend
        backend.export_to_stream(stream)
        capsule = dlpack.export(source.geometry, self.dtype, source.device, max_version, copied=source is not self)
        backend.lend(source.geometry, stream)
        return capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device.backend.dlpack_type, self.device.index

    # Operators

    __add__, __radd__ = binary("add"), reflected("add")
    __sub__, __rsub__ = binary("sub"), reflected("sub")
    __mul__, __rmul__ = binary("mul"), reflected("mul")
    __truediv__, __rtruediv__ = binary("div"), reflected("div")
    __floordiv__, __rfloordiv__ = binary("floordiv"), reflected("floordiv")
    __mod__, __rmod__ = binary("rem"), reflected("rem")
    __pow__, __rpow__ = binary("pow"), reflected("pow")
    __and__, __rand__ = binary("and"), reflected("and")
    __or__, __ror__ = binary("or"), reflected("or")
    __xor__, __rxor__ = binary("xor"), reflected("xor")
    __lshift__, __rlshift__ = binary("shl"), reflected("shl")
    __rshift__, __rrshift__ = binary("shr"), reflected("shr")
    __lt__, __le__, __gt__, __ge__ = binary("lt"), binary("le"), binary("gt"), binary("ge")
    __neg__, __abs__, __invert__ = unary("neg"), unary("abs"), unary("not")

    def __pos__(self) -> Tensor:
        return self

    def __divmod__(self, other: Operand) -> tuple[Tensor, Tensor]:
        return self // other, self % other

    def __rdivmod__(self, other: Operand) -> tuple[Tensor, Tensor]:
        return other // self, other % self

    def __matmul__(self, other: Operand) -> Tensor:
        return OPERATORS.method("__matmul__")(self, other)

    def __rmatmul__(self, other: Operand) -> Tensor:
        return OPERATORS.method("__matmul__")(other, self)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """The functions of the Array API standard."""
        return OPERATORS.method("__array_namespace__")(self, api_version=api_version)

    def to_device(self, target: str | Device, /, *, stream: object = None) -> Tensor:
        """This tensor on a device; copies follow the current stream's order, so that none may be named."""
        if stream is not None:
            raise DeviceError(f"to_device: no stream may be named, got {stream!r}", hint="leave stream= out")
        return self._to_device(device(target), copy=False)

    # Elementwise, as for every array, and so nothing that a dictionary could use.
    def __eq__(self, other: Operand) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]  (not one bool)
        return _equal(self, other)

    def __ne__(self, other: Operand) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]  (not one bool)
        return _unequal(self, other)

    __hash__ = None  # pyright: ignore[reportAssignmentType]  (Python's way to say unhashable)


_CPU_IN_DLPACK = (1, 0)

_readers: ContextVar[Callable[[Tensor], None] | None] = ContextVar("function told of reads", default=None)
reader = _readers.get


@contextmanager
def telling_reads(told: Callable[[Tensor], None]) -> Generator[None]:
    """Within this block, `told` is called with each tensor whose elements come to Python."""
    token = _readers.set(told)
    try:
        yield
    finally:
        _readers.reset(token)


def _as_arrays(given: Any) -> Any:
    """Tensors as NumPy's arrays, in lists and tuples too."""
    if isinstance(given, Tensor):
        return np.asarray(given)
    if type(given) in (list, tuple):
        return type(given)([_as_arrays(one) for one in given])
    return given


def _attribute_of_donated(_: Tensor, name: str) -> Any:
    if name != "geometry":
        raise AttributeError(f"'Tensor' object has no attribute {name!r}")
    raise EffectError(
        "this tensor was donated to a jitted function, and is gone since that was called",
        hint="use what the function gave back, or do not donate the argument",
    )


_HIDDEN: set[str] = set()
"""Names that completion leaves out: other names of methods, and of what tensors do not have."""


def give_methods(names: Iterable[str], hidden: Iterable[str]) -> None:
    """From now on, tensors have the methods and properties of these names that operators are; their own ones stay.

    Hidden names are others for the same, or raise errors that say what was meant. (`__getattr__` would slow all reads.)
    """
    given = set(names)
    for name in given.union(hidden) - vars(Tensor).keys():
        setattr(Tensor, name, _Operator(name))
        if name not in given:
            _HIDDEN.add(name)


# The class of tensors that were given away; no other is derived.
_DONATED = type("Tensor", (Tensor,), {"__slots__": (), "__getattr__": _attribute_of_donated})


def _integers(given: tuple[Sizes, ...], where: str) -> Shape:
    """The integers of `f(2, 3)` or `f((2, 3))`."""
    items: Any = given[0] if len(given) == 1 and isinstance(given[0], Sequence) else given
    try:
        return tuple(map(index, items))
    except TypeError:
        raise ShapeError(f"{where}: expected integers, got {items}", hint="sizes and axes are integers") from None


def stores_alike(a: DType, b: DType) -> bool:
    """Whether the two differ at most in how values are rounded and summed, and not in what a stored element means."""
    same_scales = a.policy.loss_scale == b.policy.loss_scale and a.policy.scale_axis == b.policy.scale_axis
    return a.base is b.base and same_scales


def _restore(array: Array, dtype: DType, device: Device) -> Tensor:
    return Tensor.wrap(aligned_copy(array), dtype).to(device)


def share_memory(a: Tensor, b: Tensor) -> bool:
    """Whether some element of `a` lies at the address of an element of `b`."""
    return a.device is b.device and np.shares_memory(a.geometry, b.geometry)
