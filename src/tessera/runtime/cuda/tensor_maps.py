"""Tensor maps: how the copy engine of a GPU sees an array, made from a plan's recipe and the array's address.

The recipe says which axes of the array become axes of the map, and how large a box moves at once. What the hardware
demands of addresses and strides is checked here, where it can be said what is wrong. Maps are kept: calls with the same
arrays find theirs, also those of another program of the kernel.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from ctypes import addressof, c_char, c_void_p, cast
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from tessera.cached_property import cached_property
from tessera.compiler.launch_plan import MAP_BYTES, WORD, TensorMap
from tessera.dtypes import types as dt
from tessera.dtypes.types import DType
from tessera.errors import ShapeError, TesseraError
from tessera.runtime.cache.newest import shorten
from tessera.runtime.cuda import driver
from tessera.runtime.cuda.context import Context
from tessera.runtime.cuda.launching import has_entry, steps_on_host
from tessera.runtime.device.memory import Array, aligned_empty, data_address
from tessera.runtime.native import fresh_arrays
from tessera.runtime.native import launch as host_launch
from tessera.shapes.expr import format_shape
from tessera.shapes.tracked import is_tracked, plain

MOST_MAPS = 512
_MOST_LATELY = 4  # addresses of one argument for which maps are made ahead
_NARROW, _WORDS = 4, np.dtype(np.uint64)
# Of the args block of `encode_map` in host_steps.ll.
MAP_WORD, ARRAY_WORD, _SIZES_WORD, _STRIDES_WORD, _BOX_WORD, _STEPS_WORD, _WORDS_OF_MAP = 13, 14, 15, 20, 25, 28, 31

_MOST_AXES, _LARGEST_BOX, _UNIT = 5, 256, 16
_LARGEST_SIZE, _LARGEST_STRIDE = 1 << 32, 1 << 40
_PROMOTIONS = (64, 128, 256)
_COPY = "give a contiguous copy: .copy()"
# Elements are only moved, so of narrow types nothing but the width counts.
_TYPES: dict[DType, str] = {
    dt.f64: "FLOAT64",
    dt.f32: "FLOAT32",
    dt.tf32: "FLOAT32",
    dt.f16: "FLOAT16",
    dt.bf16: "BFLOAT16",
    dt.i64: "INT64",
    dt.u64: "UINT64",
    dt.i32: "INT32",
    dt.u32: "UINT32",
}
_BY_WIDTH = {1: "UINT8", 2: "UINT16"}


class Extent(NamedTuple):
    """The arguments for the driver: sizes in elements, strides in bytes of all axes but the first, innermost first."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]


def type_name(dtype: DType) -> str:
    """The driver's name for elements of a type."""
    return _TYPES.get(dtype.base) or _BY_WIDTH[dtype.storage.itemsize]


def extent(recipe: TensorMap, dtype: DType, sizes: tuple[int, ...], strides: tuple[int, ...], what: str) -> Extent:
    """The sizes and strides of the map for an array of these, or what is wrong with them. `what` names the array."""
    itemsize = dtype.storage.itemsize

    def refuse(message: str, hint: str) -> ShapeError:
        given = f"{format_shape(sizes)} of {dtype}, strides {format_shape(strides)}"
        return ShapeError(f"{what}: {message}", shapes=[given], hint=hint)

    if not 1 <= len(recipe.axes) <= _MOST_AXES or len(recipe.box) != len(recipe.axes):
        raise refuse(f"a tensor map has 1 to {_MOST_AXES} axes and as large a box, not {len(recipe.axes)}", "use fewer")
    if not all(1 <= part <= _LARGEST_BOX for part in recipe.box):
        raise refuse(
            f"a box of {recipe.box} elements; of an axis 1 to {_LARGEST_BOX} move at once", "use smaller tiles"
        )
    row = recipe.box[0] * itemsize
    if row % _UNIT or (recipe.swizzle and row > recipe.swizzle):
        most = f"{_UNIT} bytes" if not recipe.swizzle else f"{_UNIT}, up to {recipe.swizzle} bytes with this swizzle"
        raise refuse(
            f"a box of {row} bytes along its innermost axis; multiples of {most}", "use tiles of another width"
        )
    measured = [axis.measure(sizes, strides) for axis in recipe.axes]
    # An empty array has no element to point at: nothing of it is ever asked for.
    counts = tuple(max(count, 1) for count, _ in measured)
    if any(count > _LARGEST_SIZE for count in counts):
        raise refuse(f"an axis of more than {_LARGEST_SIZE:,} elements", "split the array")
    if measured[0][1] != 1 and counts[0] != 1:
        raise refuse(f"neighbours along axis {recipe.axes[0].axis} are {measured[0][1]} elements apart, not 1", _COPY)
    steps: list[int] = []
    for axis, count, (_, stride) in zip(recipe.axes[1:], counts[1:], measured[1:], strict=True):
        nbytes = stride * itemsize
        if count == 1:
            nbytes = _UNIT  # it is never stepped over
        if nbytes % _UNIT or not 0 <= nbytes < _LARGEST_STRIDE:
            raise refuse(
                f"a stride of {nbytes} bytes along axis {axis.axis}; the copy engine steps by multiples of {_UNIT}",
                f"give a copy with rows of a multiple of {_UNIT // itemsize or 1} elements",
            )
        steps.append(nbytes)
    return Extent(counts, tuple(steps))


class MapKind:
    """The properties that all tensor maps of one argument of a kernel share, whatever the sizes of arrays are."""

    def __init__(self, recipe: TensorMap, dtype: DType, what: str, index: int) -> None:
        self.recipe, self.dtype, self.what, self.index = recipe, dtype, what, index

    def maps(self, sizes: tuple[int, ...], strides: tuple[int, ...], lately: Lately | None = None) -> Maps:
        """The maps of arrays with this extent, which has been checked."""
        return Maps(self, (*sizes, *strides), lately)

    @cached_property
    def encode(self) -> Callable[..., int | tuple[int, ...]]:
        """Fills the memory of a map, given that, the array's address, its sizes and strides: 0, or a status first."""
        if not has_entry():
            calls = Context.of(self.index).calls
            return partial(_encode, calls.encode_map, self._numbers, self.recipe.box)
        arguments = [("array", MAP_WORD), *[("i64", word) for word in (ARRAY_WORD, *self.words)]]
        kernel = steps_on_host()
        return host_launch.make(kernel.address("encode_map"), self.template, arguments, 0, 1, keep=kernel)

    @property
    def words(self) -> list[int]:
        """Where sizes and strides are in the args block of `encode_map`."""
        rank = len(self.recipe.axes)
        return [*range(_SIZES_WORD, _SIZES_WORD + rank), *range(_STRIDES_WORD, _STRIDES_WORD + rank - 1)]

    @cached_property
    def template(self) -> bytes:
        """That args block, without the array: address, sizes and strides."""
        rank, (of_type, swizzle, fetched) = len(self.recipe.axes), self._numbers
        encode_map = cast(Context.of(self.index).calls.encode_map, c_void_p).value or 0
        found = bytearray(WORD * host_launch.FIRST_SLOT)
        found += struct.pack("<5q", encode_map, of_type, rank, swizzle, fetched)
        found += bytes(WORD * _WORDS_OF_MAP - len(found))
        for word, narrow in ((_BOX_WORD, self.recipe.box), (_STEPS_WORD, [1] * rank)):
            struct.pack_into(f"<{rank}I", found, WORD * word, *narrow)
        return bytes(found)

    @cached_property
    def _numbers(self) -> tuple[int, int, int]:
        fetched = promotion(self.recipe, self.dtype.storage.itemsize)
        return _numbers(type_name(self.dtype), self.recipe.swizzle, fetched)


def _encode(
    driver_s: Callable[..., int], numbers: tuple[int, int, int], box: Sequence[int], out: Array, *given: int
) -> int | tuple[int, ...]:
    """The same by Python and ctypes."""
    rank, (of_type, swizzle, fetched) = len(box), numbers
    # What the driver reads: sizes, strides of which there is one less, the box, and steps of 1.
    packed = bytearray(struct.pack(f"<{2 * rank}Q{2 * rank}I", *given[1:], 0, *box, *[1] * rank))
    sizes = addressof(c_char.from_buffer(packed))
    strides, narrow = sizes + WORD * rank, sizes + 2 * WORD * rank
    steps = narrow + _NARROW * rank
    status = driver_s(data_address(out), of_type, rank, given[0], sizes, strides, narrow, steps, 0, swizzle, fetched, 0)
    return (status,) if status else 0


class Sized(NamedTuple):
    """A tensor map but for the array's address. Sizes and strides, which have been checked, may be tracked."""

    kind: MapKind
    extent: Extent

    @staticmethod
    def of(
        recipe: TensorMap, dtype: DType, sizes: tuple[int, ...], strides: tuple[int, ...], what: str, index: int = 0
    ) -> Sized:
        """That of arrays with these sizes and strides."""
        return Sized(MapKind(recipe, dtype, what, index), extent(recipe, dtype, sizes, strides, what))

    def block(self) -> tuple[bytes, list[tuple[int, int]]]:
        """The args block of `encode_map`, but for two addresses; at which bytes it has numbers that are tracked."""
        block, opened = bytearray(self.kind.template), list[tuple[int, int]]()
        for word, number in zip(self.kind.words, (*self.extent.sizes, *self.extent.strides), strict=True):
            struct.pack_into("<q", block, WORD * word, plain(number))
            if is_tracked(number):
                opened.append((WORD * word, number))
        return bytes(block), opened


Lately = dict[int, None]
"""Addresses that an argument of a kernel had lately, the last ones last."""


@lru_cache(maxsize=256)
def lately(argument: tuple[object, ...]) -> Lately:
    """Those of an argument, by what tells it from others: the kernel, its index, and what arrays are given for it.

    Another program of the kernel is going to be given the same arrays: where it is bound to such, by a thread in
    the background, its maps of these are made then and there.
    """
    return {}


class Maps:
    """The tensor maps of one argument of a kernel, for arrays of one type, shape and strides, by their addresses."""

    __slots__ = ("_lately", "extent", "kind", "made")

    def __init__(self, kind: MapKind, known: tuple[int, ...], lately: Lately | None = None) -> None:
        self.kind = kind
        self.extent = known
        self.made: dict[int, Array] = {}
        self._lately = lately
        for pointer in list(lately or ()):
            with suppress(TesseraError):  # the call that wants it learns of it
                self.of(pointer)

    @staticmethod
    def sized(
        recipe: TensorMap, dtype: DType, sizes: tuple[int, ...], strides: tuple[int, ...], what: str, index: int = 0
    ) -> Maps:
        """The maps of arrays with these sizes and strides, which are checked."""
        kind, known = Sized.of(recipe, dtype, sizes, strides, what, index)
        return kind.maps(known.sizes, known.strides)

    def of(self, pointer: int) -> Array:
        """The map for an array at an address: 128 bytes on the host."""
        found = self.made.get(pointer)
        if found is None:
            found = self._encoded(pointer)
            self.made[pointer] = found
            shorten(self.made, MOST_MAPS)
            if self._lately is not None:
                self._lately[pointer] = None
                shorten(self._lately, _MOST_LATELY)
        return found

    def _encoded(self, pointer: int) -> Array:
        kind = self.kind
        if pointer % _UNIT:
            raise ShapeError(
                f"{kind.what}: its address is {pointer:#x}, the copy engine needs a multiple of {_UNIT}",
                hint="give a copy, or a view that begins at a multiple of 16 bytes",
            )
        found = _fresh_map()()
        status = kind.encode(found, pointer, *self.extent)
        if status:
            with Context.of(kind.index):  # there may have been none on this thread
                status = kind.encode(found, pointer, *self.extent)
        if status:
            assert isinstance(status, tuple)
            rank = len(kind.recipe.axes)
            known = Extent(self.extent[:rank], self.extent[rank:])
            doing = f"{kind.what}: making a tensor map of {known} with a box of {kind.recipe.box}"
            driver.check_status(status[0], doing)
        return found


class Together(dict[tuple[int, ...], Array]):
    """The tensor maps of launches that follow each other, for arrays of certain sizes, by the addresses of all of them.

    They lie one behind the other, and are made all at once: `encode` takes their memory, and arrays and addresses.
    """

    __slots__ = ("encode", "kinds")

    def __init__(self, kinds: Sequence[MapKind], encode: Callable[..., int | tuple[int, ...]]) -> None:
        self.kinds, self.encode = kinds, encode

    def of(self, key: tuple[int, ...], *values: Any) -> Array:
        """The maps for arrays and addresses that the key is of; they are kept."""
        found = _fresh_map(len(self.kinds))()
        status = self.encode(found, *values)
        if status:
            with Context.of(self.kinds[0].index):  # there may have been none on this thread
                status = self.encode(found, *values)
        if status:
            assert isinstance(status, tuple)
            driver.check_status(status[0], f"{self.kinds[status[1]].what}: making a tensor map")
        self[key] = found
        shorten(self, MOST_MAPS)
        return found


@cache
def _fresh_map(count: int = 1) -> Callable[[], Array]:
    """Makes memory for maps."""
    shape = (count * MAP_BYTES // WORD,)
    return (fresh_arrays.maker(shape, _WORDS) if has_entry() else None) or partial(aligned_empty, shape, _WORDS)


@lru_cache(maxsize=64)
def _numbers(kind: str, swizzle: int, promoted: str) -> tuple[int, int, int]:
    """The driver's numbers for a type of elements, a swizzle and how much the cache fetches at once."""
    cu = driver.bindings()
    return (
        int(getattr(cu.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{kind}")),
        int(_swizzle(cu, swizzle)),
        int(getattr(cu.CUtensorMapL2promotion, f"CU_TENSOR_MAP_L2_PROMOTION_{promoted}")),
    )


def promotion(recipe: TensorMap, itemsize: int) -> str:
    """How much the cache fetches at once, in the driver's words.

    Where a box has several parts of a row, a copy asks for what lies beside each of them by itself: keys that are read
    once, in two parts of 128 bytes, came 8 % slower where the cache fetched 256.
    """
    most = recipe.box[0] * itemsize if any(axis.part == "outer" for axis in recipe.axes) else _PROMOTIONS[-1]
    size = max((size for size in _PROMOTIONS if size <= most), default=0)
    return f"L2_{size}B" if size else "NONE"


def _swizzle(cu: Any, nbytes: int) -> Any:
    kinds = cu.CUtensorMapSwizzle
    return kinds.CU_TENSOR_MAP_SWIZZLE_NONE if not nbytes else getattr(kinds, f"CU_TENSOR_MAP_SWIZZLE_{nbytes}B")
