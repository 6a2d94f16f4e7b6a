"""Making tensors: from Python values, from other libraries' arrays, and filled with constants or ranges."""

from __future__ import annotations

import functools
import math
from array import array as packed
from collections.abc import Callable, Sequence
from operator import index
from typing import Any, Protocol, SupportsIndex, TypeAlias, TypeGuard, cast

import numpy as np

from tessera.dtypes import casting
from tessera.dtypes.promotion import as_dtype
from tessera.dtypes.types import DType, bool_, f32, f64, i64
from tessera.errors import DtypeError, ResourceError, ShapeError, TesseraError
from tessera.runtime.device.device import CPU, Device, default_device, device_of_dlpack, provided_backend
from tessera.runtime.device.device import device as find_device
from tessera.runtime.device.memory import Array, aligned, aligned_empty, contiguous_strides
from tessera.runtime.tensor import dlpack
from tessera.runtime.tensor.interface import DTypeLike, provide_conversion
from tessera.runtime.tensor.operators import Scalar, nearest, weak_scalar
from tessera.runtime.tensor.tensor import Tensor
from tessera.shapes.expr import Dim, DimLike
from tessera.tracebacks import trim

DeviceLike: TypeAlias = str | Device
# One size, or a sequence of them.
_Sizes: TypeAlias = Sequence[SupportsIndex]
ShapeLike: TypeAlias = SupportsIndex | _Sizes
_Numbers: TypeAlias = list[object]

_PYTHON_TYPES = frozenset({bool, int, float, list, tuple})
_PYTHON_SCALARS = frozenset({bool, int, float})


class _Producer(Protocol):
    """What shares its memory by DLPack."""

    def __dlpack__(self, **options: object) -> object: ...

    def __dlpack_device__(self) -> tuple[int, int]: ...


def asarray(
    x: object, dtype: DTypeLike | None = None, *, device: DeviceLike | None = None, copy: bool | None = None
) -> Tensor:
    """`x` as a tensor: shared where dtype and device allow it, else copied.

    Takes tensors, arrays of NumPy, torch, JAX and whatever has `__dlpack__`, `__cuda_array_interface__` or `__array__`,
    Python numbers and nested lists of them (f32, i64 or bool unless `dtype` says otherwise). `copy=True` always copies;
    `copy=False` is an error where memory cannot be shared.
    """
    kind = type(x)
    if kind is range:
        x, kind = list(cast(range, x)), list
    if kind in _PYTHON_TYPES:
        if copy is False:
            raise ResourceError(f"a Python {kind.__name__} has no memory to share", hint="leave copy=False out")
        return _from_python(x, None if dtype is None else as_dtype(dtype), device)
    if kind is Tensor:
        tensor = cast(Tensor, x)
    elif isinstance(x, np.ndarray | np.generic):
        tensor = _from_array(np.asarray(cast(object, x)), copy)
    elif hasattr(x, "__dlpack__"):
        tensor = from_dlpack(x, copy=False if copy is False else None)
    elif hasattr(x, "__cuda_array_interface__"):
        elements, found, buffer = provided_backend("cuda").import_array(x)
        tensor = Tensor.wrap(elements, found, buffer.device, buffer)
    elif hasattr(x, "__array__") or hasattr(x, "__array_interface__") or isinstance(x, memoryview | bytearray | packed):
        tensor = _from_array(np.asarray(cast(object, x)), copy)
    else:
        raise DtypeError(
            f"cannot make a tensor of a {kind.__name__}",
            hint="give numbers, nested lists of numbers, or an array with __dlpack__ or __array__",
        )
    result = tensor if dtype is None else tensor.to(dtype)
    result = result if device is None else result.to(find_device(device))
    if copy is False and result.pointer != tensor.pointer:
        raise ResourceError(
            f"{tensor.dtype} on {tensor.device} cannot be {result.dtype} on {result.device} in the same memory",
            hint="leave copy=False out",
        )
    return result.copy() if copy and result.pointer == tensor.pointer else result


provide_conversion(asarray)


def array(x: object, dtype: DTypeLike | None = None, *, device: DeviceLike | None = None) -> Tensor:
    """A copy of `x` as a tensor; see `asarray`."""
    return asarray(x, dtype, device=device, copy=True)


def from_numpy(x: Array) -> Tensor:
    """The memory of a NumPy array as a tensor, without a copy."""
    return asarray(x, copy=False)


def from_dlpack(x: object, *, device: DeviceLike | None = None, copy: bool | None = None) -> Tensor:
    """The memory of anything with `__dlpack__` as a tensor, without a copy unless asked for one.

    It is read-only where the producer says so, or cannot say that it is not (capsules from before DLPack 1.0).
    """
    if not (hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__")):
        raise dlpack.ExchangeError(
            f"a {type(x).__name__} has no memory to share: it has no __dlpack__", hint="use asarray to copy its values"
        )
    producer = cast(_Producer, x)
    origin = device_of_dlpack(*map(int, producer.__dlpack_device__()))
    stream = origin.backend.import_stream()
    options: dict[str, object] = {} if stream is None else {"stream": stream}
    newer: dict[str, object] = {"max_version": dlpack.VERSION, **({"copy": False} if copy is False else {})}
    try:
        try:
            capsule = producer.__dlpack__(**options, **newer)
        except TypeError:  # a producer from before DLPack 1.0
            capsule = producer.__dlpack__(**options)
    except TesseraError:
        raise
    except Exception as refusal:
        raise dlpack.ExchangeError(
            f"{type(x).__name__} does not share its memory: {refusal}",
            hint="give it a plain array, detached from gradients, or a copy",
        ) from refusal
    taken = dlpack.take(capsule)
    tensor = Tensor.wrap(taken.array, taken.dtype, origin, taken.buffer)
    if not taken.array.flags.aligned:
        tensor = _copied(tensor, copy, "its address is not a multiple of its element size")
    elif copy:
        tensor = tensor.copy()
    return tensor if device is None else tensor.to(find_device(device))


def _copied(tensor: Tensor, copy: bool | None, reason: str) -> Tensor:
    if copy is False:
        raise ResourceError(f"this memory cannot be shared: {reason}", hint="leave copy=False out")
    return tensor.copy()


def _from_array(given: Array, copy: bool | None) -> Tensor:
    native = given if given.dtype.isnative else given.astype(given.dtype.newbyteorder("="))
    if native is not given and copy is False:
        raise ResourceError("this memory cannot be shared: its byte order is foreign", hint="leave copy=False out")
    tensor = Tensor.wrap(native, as_dtype(native.dtype))
    itemsize = native.itemsize
    if any(stride % itemsize for stride in native.strides):
        return _copied(tensor, copy, "its strides are not multiples of its element size")
    if not native.flags.aligned:
        return _copied(tensor, copy, "its address is not a multiple of its element size")
    return tensor


def _is_list_of_floats(x: object) -> TypeGuard[list[float]]:
    return type(x) is list and set(map(type, cast(_Numbers, x))) == {float}


def _is_nested(x: object) -> TypeGuard[_Numbers | tuple[object, ...]]:
    return type(x) in (list, tuple)


def _from_python(x: object, dtype: DType | None, device: DeviceLike | None) -> Tensor:
    if dtype in (None, f32) and _is_list_of_floats(x):
        # The commonest literal, without a detour through float64: C rounds as `cast` does.
        numbers = aligned_empty((len(x),), f32.storage)
        numbers.data[:] = packed("f", x)
        return fresh(numbers, f32, device)
    try:
        given: Array = np.asarray(x)
    except ValueError:
        raise ShapeError(
            "the nested lists are not a rectangle", hint="give lists of equal lengths at each level"
        ) from None
    if given.dtype.kind in _NOT_NUMBERS:
        raise DtypeError(
            f"expected bools, floats and integers of up to 64 bits, got {_first_leaf(x)!r}",
            hint="give numbers, or nested lists of numbers",
        )
    source = as_dtype(given.dtype)
    if dtype is None:
        dtype = f32 if source is f64 and not _has_types(x) else source
    if source is not dtype:
        _check_range(given, source, dtype)
        given = casting.cast(given, source, nearest(dtype))
    return fresh(aligned(given), dtype, device)


# NumPy's letters for objects, strings, dates and complex numbers.
_NOT_NUMBERS = "OUSMmc"


def _first_leaf(x: object) -> object:
    """The first thing in the nested lists that is not a number here."""
    if _is_nested(x):
        return next((leaf for item in x if (leaf := _first_leaf(item)) is not None), None)
    return None if type(x) in _PYTHON_SCALARS and -(2**63) <= cast(float, x) < 2**64 else x


def _has_types(x: object) -> bool:
    """Whether something in the nested lists has a type of its own, such as a NumPy scalar."""
    if not _is_nested(x):
        return type(x) not in _PYTHON_SCALARS
    types = set(map(type, x))
    if types <= _PYTHON_SCALARS:
        return False
    return not types <= _PYTHON_TYPES or any(_has_types(item) for item in x)


def _check_range(given: Array, source: DType, dtype: DType) -> None:
    if not (source.is_integer and dtype.is_integer and given.size):
        return
    for value in (int(given.min()), int(given.max())):
        if not dtype.min_value <= value <= dtype.max_value:
            raise DtypeError(
                f"{value} is out of range for {dtype}, which goes from {dtype.min_value} to {dtype.max_value}",
                hint="use a wider dtype",
            )


def fresh(values: Array, dtype: DType, device: DeviceLike | None) -> Tensor:
    """A tensor of new host memory, moved to `device` or else to the default device."""
    target = default_device() if device is None else find_device(device)
    tensor = Tensor.wrap(values, dtype)
    return tensor if target is CPU else tensor.to(target)


def sizes_of(shape: ShapeLike) -> tuple[int, ...]:
    """`shape` as a tuple of sizes."""
    listed: object = shape.tolist() if isinstance(shape, np.ndarray | Tensor) else shape
    items = cast(_Sizes, listed if isinstance(listed, tuple | list) else (listed,))
    try:
        sizes = tuple(map(index, items))
    except TypeError:
        sizes = (-1,)
    if any(size < 0 for size in sizes):
        raise ShapeError(f"expected a shape, got {shape!r}", hint="give one or more sizes of at least 0")
    return sizes


class Maker(Protocol):
    """A maker of tensors that takes a shape, or its sizes one by one."""

    def __call__(
        self,
        shape: DimLike | SupportsIndex | Sequence[DimLike | SupportsIndex],
        *sizes: Any,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
        **options: Any,
    ) -> Tensor: ...


def taking_sizes(function: Callable[..., Any]) -> Maker:
    """Lets a function of a shape take its sizes one by one, too: `zeros(2, 3)` is `zeros((2, 3))`."""

    @functools.wraps(function)
    def made(*given: Any, **named: Any) -> Any:
        try:
            if len(given) < 2 or not _is_size(given[1]):
                return function(*given, **named)
            count = next((at for at, one in enumerate(given) if not _is_size(one)), len(given))
            return function(given[:count], *given[count:], **named)
        except Exception as error:
            trim(error)
            raise

    return made


def _is_size(value: object) -> bool:
    return hasattr(type(value), "__index__") or isinstance(value, Dim)


def empty(shape: ShapeLike, dtype: DTypeLike = f32, device: DeviceLike | None = None) -> Tensor:
    """A tensor whose elements are whatever the memory held."""
    dtype, target = as_dtype(dtype), default_device() if device is None else find_device(device)
    if target is CPU:
        return Tensor.wrap(aligned_empty(sizes_of(shape), dtype.storage), dtype)
    sizes = sizes_of(shape)
    strides = contiguous_strides(sizes, dtype.storage.itemsize)
    buffer = target.backend.allocate(math.prod(sizes) * dtype.storage.itemsize)
    return Tensor.wrap(buffer.array(dtype.storage, sizes, strides), dtype, target, buffer)


def full(shape: ShapeLike, value: Scalar, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """A tensor of `value`; f32, i64 or bool by the type of `value` unless `dtype` says otherwise."""
    if isinstance(value, Tensor):
        value, dtype = value.item(), value.dtype if dtype is None else dtype
    dtype = as_dtype(type(value) if dtype is None else dtype)
    filled = aligned_empty(sizes_of(shape), dtype.storage)
    filled[...] = weak_scalar(value, dtype)
    return fresh(filled, dtype, device)


def _check_numbers(name: str, given: Sequence[float]) -> None:
    """Refuses what is no number; whatever `float` takes is one, but for texts."""
    try:
        for one in given:
            math.isfinite(one)
    except (TypeError, ValueError):
        raise DtypeError(f"{name} expects numbers, got {list(given)}", hint="give finite numbers") from None


def _bound(given: object) -> float:
    """A number of NumPy, or of a tensor, as one of Python's."""
    return cast(float, given.item() if isinstance(given, np.generic | Tensor) and not given.ndim else given)


def arange(
    start: float,
    stop: float | None = None,
    step: float = 1,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """start, start + step, … below `stop`; from 0 where only one bound is given. i64, or f32 if a bound is a float."""
    first, last, step = [_bound(one) for one in ((0, start) if stop is None else (start, stop)) + (step,)]
    bounds = (first, last, step)
    _check_numbers("arange", bounds)
    whole = all(isinstance(bound, int) for bound in bounds)
    if step == 0 or not all(map(math.isfinite, bounds)):
        raise ShapeError(
            f"arange({first}, {last}, {step}) has no length", hint="give finite bounds and a step other than 0"
        )
    source = i64 if whole else f64
    values = np.arange(*bounds, dtype=source.storage)
    return _convert(values, source, as_dtype(dtype or (i64 if whole else f32)), device)


def linspace(
    start: float,
    stop: float,
    num: int,
    dtype: DTypeLike = f32,
    device: DeviceLike | None = None,
    *,
    endpoint: bool = True,
) -> Tensor:
    """`num` evenly spaced numbers from `start` to `stop`, which is left out without `endpoint`."""
    _check_numbers("linspace", (start, stop))
    counts = sizes_of(num)
    if len(counts) != 1:
        raise ShapeError(f"linspace expects one count, got {num!r}", hint="write linspace(0.0, 1.0, 11)")
    values = np.linspace(start, stop, *counts, endpoint=endpoint, dtype=np.float64)
    return _convert(values, f64, as_dtype(dtype), device)


def eye(
    n_rows: int, n_cols: int | None = None, *, k: int = 0, dtype: DTypeLike = f32, device: DeviceLike | None = None
) -> Tensor:
    """A matrix with ones on the k-th diagonal and zeros elsewhere."""
    rows, columns = sizes_of((n_rows, n_rows if n_cols is None else n_cols))
    return _convert(np.eye(rows, columns, k, dtype=np.bool_), bool_, as_dtype(dtype), device)


def _convert(values: Array, source: DType, dtype: DType, device: DeviceLike | None) -> Tensor:
    return fresh(aligned(casting.cast(values, source, nearest(dtype))), dtype, device)


def empty_like(x: Tensor, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """A tensor of the shape of `x`, and of its dtype and device unless others are named; see `empty`."""
    return empty(x.shape, dtype or x.dtype, device or x.device)
