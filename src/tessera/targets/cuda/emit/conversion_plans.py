"""How a tile changes its layout through shared memory: in which order it lies there, so that bank conflicts are few.

Memory holds *atoms*: elements, or as many small ones as a word of 32 bits has, neighbours along an axis along which
both layouts keep them in one thread. Atoms lie along one axis, side by side, rows of them behind each other at a pitch
that may be longer than they are; or groups of them are swizzled from row to row. Of all such orders the one is taken
that takes the fewest wavefronts, found by going through what the lanes of each warp do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from math import prod

import numpy as np
import numpy.typing as npt

from tessera.targets.cuda.ir.layouts import WARP, Layout

Numbers = npt.NDArray[np.int64]

BANKS, BANK, WIDEST = 32, 4, 16
_ACCESS_COST, _SWIZZLE_COST = 0.25, 0.5
"""The cost of an access besides, and of swizzling an access, in wavefronts of the banks."""
_MOST_SHIFTS = 5
_LOOKED_AT = 4
"""Accesses of a layout repeat each other's pattern: so many are looked at."""


@dataclass(frozen=True)
class Order:
    """Where atoms lie: `fast` is the axis along which they are neighbours."""

    shape: tuple[int, ...]
    atom_axis: int
    atom: int
    itemsize: int
    fast: int
    pitch: int
    group: int = 1
    """How many atoms are swizzled together."""
    shift: int = 0
    mask: int = 0
    """From row to row: groups are numbered, and the numbers xored with bits of the row's number, from `shift` on."""

    @property
    def atom_bytes(self) -> int:
        return self.atom * self.itemsize

    @property
    def extents(self) -> tuple[int, ...]:
        """How many atoms there are along each axis."""
        return tuple(-(-size // (self.atom if axis == self.atom_axis else 1)) for axis, size in enumerate(self.shape))

    @property
    def steps(self) -> tuple[int, ...]:
        """How many rows, or on the fast axis how many atoms, lie between neighbours along each axis."""
        found, rows = [0] * len(self.shape), 1
        for axis in reversed(range(len(self.shape))):
            if axis == self.fast:
                found[axis] = 1
            else:
                found[axis] = rows
                rows *= self.extents[axis]
        return tuple(found)

    @property
    def bytes(self) -> int:
        rows = prod(extent for axis, extent in enumerate(self.extents) if axis != self.fast)
        return rows * self.pitch * self.atom_bytes

    def offsets(self, coordinates: Sequence[Numbers]) -> Numbers:
        """The bytes at which the atoms with these elements begin."""
        row, column = np.zeros_like(coordinates[0]), np.zeros_like(coordinates[0])
        for axis, (coordinate, step) in enumerate(zip(coordinates, self.steps, strict=True)):
            position = coordinate // (self.atom if axis == self.atom_axis else 1)
            if axis == self.fast:
                column = position
            else:
                row = row + position * step
        if self.mask:
            column = column ^ ((row >> self.shift & self.mask) * self.group)
        return (row * self.pitch + column) * self.atom_bytes


@dataclass(frozen=True)
class Side:
    """One layout's part: registers in vectors of atoms, each of which is one access."""

    vectors: tuple[tuple[tuple[int, ...], ...], ...]
    """For each access its atoms, for each atom its registers."""
    width: int


@dataclass(frozen=True)
class ConversionPlan:
    """An order, and the accesses on both sides."""

    order: Order
    writes: Side
    reads: Side
    within_warps: bool
    """Whether every warp reads what it wrote itself."""
    wavefronts: float
    least: float
    """Wavefronts of the banks that a warp takes, and how few there could be."""

    @property
    def cost(self) -> float:
        """In wavefronts of the banks; of two that take as many, the smaller."""
        accesses = len(self.writes.vectors) + len(self.reads.vectors)
        swizzled = _SWIZZLE_COST * accesses if self.order.mask else 0
        return self.wavefronts + _ACCESS_COST * accesses + swizzled + self.order.bytes / 65536


def thread_bases(layout: Layout, axis: int, threads: int) -> Numbers:
    numbers = np.arange(threads)
    total = np.zeros(threads, np.int64)
    for digit, below in layout.positions:
        if digit.axis == axis:
            total += numbers // below % digit.size * digit.step
    return total


def keeps_together(layout: Layout, axis: int, count: int) -> bool:
    """Whether so many neighbours along an axis, from a multiple on, are always in one thread."""
    steps = [digit.step for digit in layout.threads if digit.axis == axis]
    offsets = set(layout.offsets(axis))
    whole = all({first + more for more in range(count)} <= offsets for first in {o - o % count for o in offsets})
    return whole and not any(step % count for step in steps)


def side_of(layout: Layout, order: Order, width: int) -> Side:
    """The accesses of a layout, `width` atoms each."""
    fast, atom_axis, atom = order.fast, order.atom_axis, order.atom
    axes = range(len(order.shape))
    by_axis = [layout.offsets(axis) for axis in axes]
    groups: dict[tuple[int, ...], dict[int, dict[int, int]]] = {}
    for register in range(layout.count):
        key = [by_axis[axis][register] for axis in axes]
        part = key[atom_axis] % atom if atom > 1 else 0
        if atom > 1:
            key[atom_axis] //= atom
        column = key[fast]
        key[fast] = column // width
        vector = groups.setdefault(tuple(key), {})
        vector.setdefault(column % width, {}).setdefault(part, register)
    vectors = [
        tuple(tuple(vector[column][part] for part in range(atom)) for column in range(width))
        for _, vector in sorted(groups.items())
    ]
    return Side(tuple(vectors), width)


def width_of(layout: Layout, order: Order) -> int:
    """How many atoms a thread can move at once."""
    width = WIDEST // order.atom_bytes
    scale = order.atom if order.fast == order.atom_axis else 1
    while width > 1 and not keeps_together(layout, order.fast, width * scale):
        width //= 2
    return width


def wavefronts_of(layout: Layout, order: Order, side: Side) -> tuple[float, float]:
    """How many wavefronts the accesses of a warp take, and how few there could be, from a few of them."""
    axes = range(len(order.shape))
    size = side.width * order.atom_bytes
    at_once = min(WARP, BANKS * BANK // size)
    every = -(-len(side.vectors) // _LOOKED_AT)
    looked_at = np.array([vector[0][0] for vector in side.vectors[::every]])
    coordinates: list[Numbers] = []
    for axis in axes:
        offsets = np.array(layout.offsets(axis))[looked_at]
        coordinates.append(offsets[:, None] + thread_bases(layout, axis, WARP))
    inside = np.all([c < extent for c, extent in zip(coordinates, order.shape, strict=True)], axis=0)
    starts = order.offsets(coordinates)
    wavefronts = least = 0
    for access, kept in zip(starts.reshape(-1, at_once), inside.reshape(-1, at_once), strict=True):
        words = np.unique((access[kept][:, None] // BANK + np.arange(max(1, size // BANK))).reshape(-1))
        if words.size:
            wavefronts += int(np.bincount(words % BANKS).max())
            least += -(-words.size // BANKS)
    part = len(side.vectors) / len(looked_at)
    return wavefronts * part, least * part


def _bases(source: Layout, result: Layout, shape: tuple[int, ...], itemsize: int) -> Iterator[Order]:
    """The orders without a pitch: every choice of atoms and of the axis along which they lie."""
    axes = range(len(shape))
    ways = max(1, BANK // itemsize)
    together = [a for a in axes if keeps_together(source, a, ways) and keeps_together(result, a, ways)]
    atoms = [(axis, ways) for axis in together] if ways > 1 and together else [(-1, 1)]
    for (atom_axis, atom), fast in product(atoms, axes):
        yield Order(shape, atom_axis, atom, itemsize, fast, 0)


def _orders(base: Order, widest: int) -> Iterator[Order]:
    """Every pitch; then groups that are swizzled."""
    whole = -(-base.extents[base.fast] // widest) * widest
    for pad in range(0, BANKS * BANK // base.atom_bytes, widest):
        yield replace(base, pitch=whole + pad)
    groups = whole // widest
    if groups & (groups - 1) == 0 and groups > 1:
        for shift, bits in product(range(_MOST_SHIFTS), range(1, min(groups, 32).bit_length())):
            yield replace(base, pitch=whole, group=widest, shift=shift, mask=(1 << bits) - 1)


@lru_cache(maxsize=512)
def plan(source: Layout, result: Layout, shape: tuple[int, ...], itemsize: int, threads: int) -> ConversionPlan:
    """The best way from one layout to another."""
    best: tuple[float, ConversionPlan] | None = None
    within = _within_warps(source, result, shape, threads)
    for base in _bases(source, result, shape, itemsize):
        widths = [width_of(layout, base) for layout in (source, result)]
        most = max(widths)
        while most:
            # Narrower accesses take more instructions, but not more wavefronts: smaller groups can be swizzled.
            writes, reads = (
                side_of(layout, base, min(width, most)) for layout, width in zip((source, result), widths, strict=True)
            )
            for order in _orders(base, most):
                made = _measured(source, result, order, writes, reads, within)
                if best is None or made.cost < best[0]:
                    best = made.cost, made
                if made.wavefronts == made.least:
                    break
            most = 0 if best is not None and best[1].wavefronts == best[1].least else most // 2
    assert best is not None
    return best[1]


def _measured(source: Layout, result: Layout, order: Order, writes: Side, reads: Side, within: bool) -> ConversionPlan:
    put, least_put = wavefronts_of(source, order, writes)
    got, least_got = wavefronts_of(result, order, reads)
    return ConversionPlan(order, writes, reads, within, put + got, least_put + least_got)


def _within_warps(source: Layout, result: Layout, shape: tuple[int, ...], threads: int) -> bool:
    """Whether no element goes from one warp to another; ghosts read what is not used."""
    if source.has_ghosts(shape) or result.has_ghosts(shape):
        return False
    owner = np.full(shape, -1)
    for layout, is_reader in ((source, False), (result, True)):
        axes = range(len(shape))
        bases = [thread_bases(layout, axis, threads) for axis in axes]
        offsets = [np.array(layout.offsets(axis)) for axis in axes]
        coordinates = [(base[:, None] + offset).reshape(-1) for base, offset in zip(bases, offsets, strict=True)]
        warps = np.repeat(np.arange(threads) // WARP, layout.count)
        inside = np.all([c < size for c, size in zip(coordinates, shape, strict=True)], axis=0)
        positions = tuple(coordinate[inside] for coordinate in coordinates)
        if is_reader:
            return bool((owner[positions] == warps[inside]).all())
        # The first thread that has an element writes it.
        owner[tuple(coordinate[::-1] for coordinate in positions)] = warps[inside][::-1]
    raise AssertionError("a reader comes last")
