"""Schedules as values: how a kernel is cut up, named, inherited, compared, and the spaces they are drawn from."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, NamedTuple

from tessera.errors import AutotuneError, ResourceError
from tessera.ir.tile.hints import WORDS

BLOCK_AXES = ("m", "n", "k", "d")
SWIZZLES = WORDS["swizzle"]
# The widest register tile a program instance may hold, in elements; more does not fit any target.
_LARGEST_TILE = 1 << 17
_MOST_WARPS = 32  # of a block on a GPU
_MOST_STAGES = 64
_MOST_LANES = 1 << 10

_DEFAULT_BLOCK = 64


class BlockSizes(NamedTuple):
    """The block sizes of a schedule, all of them numbers."""

    m: int
    n: int
    k: int


@dataclass(frozen=True, slots=True)
class Schedule:
    """Choices for one kernel; None leaves one to the compiler. `block` is (m, n) or (m, n, k).

    `d` is the width of the rows that a program instance can hold, where the kernel works on whole rows: narrower ones
    fit, wider ones are refused, and `T.d` is the width of the rows themselves in any case. By default any width fits.
    """

    block: tuple[int, ...] | None = None
    warps: int | None = None
    stages: int | None = None
    vector: int | None = None
    swizzle: str | None = None
    d: int | None = None

    def __post_init__(self) -> None:
        if self.block is not None:
            if isinstance(self.block, str) or not hasattr(self.block, "__iter__"):
                raise ResourceError(
                    f"a block is one to three positive sizes, got {self.block!r}", hint="write block=(64, 64)"
                )
            object.__setattr__(self, "block", tuple(self.block))
        if problem := self.problem():
            raise ResourceError(f"{self}: {problem}", hint="change that choice, or leave it out")

    def problem(self) -> str | None:
        """Why no kernel can have this schedule, or None."""
        block = self.block or ()
        if not all(_is_size(size) for size in block) or len(block) > 3:
            return "a block is one to three positive sizes: m, n and k"
        for name, most in (("warps", _MOST_WARPS), ("stages", _MOST_STAGES), ("vector", _MOST_LANES), ("d", None)):
            value = getattr(self, name)
            if value is not None and not _is_size(value):
                return f"{name} must be a positive integer"
            if value is not None and most is not None and value > most:
                return f"{name} is {most} at most"
        if self.warps is not None and self.warps & (self.warps - 1):
            return "warps must be a power of two"
        if self.vector is not None and self.vector & (self.vector - 1):
            return "vector must be a power of two"
        if self.swizzle is not None and self.swizzle not in SWIZZLES:
            return f"swizzle must be {' or '.join(SWIZZLES)}"
        if len(block) > 1 and block[0] * block[1] > _LARGEST_TILE:
            return f"a tile of {block[0]}×{block[1]} elements fits no target"
        if max(block, default=0) > _LARGEST_TILE:
            return f"a block of {max(block)} elements fits no target"
        return None

    @property
    def m(self) -> int | None:
        return self._axis(0)

    @property
    def n(self) -> int | None:
        return self._axis(1)

    @property
    def k(self) -> int | None:
        return self._axis(2)

    def _axis(self, axis: int) -> int | None:
        return self.block[axis] if self.block is not None and len(self.block) > axis else None

    @property
    def sizes(self) -> BlockSizes:
        """The block sizes; one left out is the one before."""
        m = self.m or _DEFAULT_BLOCK
        n = self.n or m
        return BlockSizes(m, n, self.k or n)

    def serves(self, width: int) -> bool:
        """Whether a program instance under this schedule can hold rows of this width."""
        return self.d is None or width <= self.d

    def with_block(self, *sizes: int) -> Schedule:
        return self._with(block=sizes)

    def with_warps(self, warps: int) -> Schedule:
        return self._with(warps=warps)

    def with_stages(self, stages: int) -> Schedule:
        return self._with(stages=stages)

    def with_vector(self, vector: int) -> Schedule:
        return self._with(vector=vector)

    def with_swizzle(self, swizzle: str) -> Schedule:
        return self._with(swizzle=swizzle)

    def with_d(self, d: int) -> Schedule:
        return self._with(d=d)

    def _with(self, **changed: Any) -> Schedule:
        # `replace` would stand between an error and the line that led to it.
        return type(self)(**{field.name: getattr(self, field.name) for field in fields(self)} | changed)

    def over(self, base: Schedule) -> Schedule:
        """This schedule, with what it leaves open taken from `base`."""
        return Schedule(
            **{
                field.name: mine if (mine := getattr(self, field.name)) is not None else getattr(base, field.name)
                for field in fields(Schedule)
            }
        )

    def __str__(self) -> str:
        given = [(field.name, getattr(self, field.name)) for field in fields(self)]
        return f"Schedule({', '.join(f'{name}={value!r}' for name, value in given if value is not None)})"

    __repr__ = __str__


_SPELLINGS = {
    "BM": "m",
    "BN": "n",
    "BK": "k",
    "BD": "d",
    **{name: name for name in (*BLOCK_AXES, "warps", "stages", "vector", "swizzle")},
}


@dataclass(frozen=True, slots=True)
class Space:
    """Choices to draw schedules from: `space().block(m=[64, 128], n=[64]).warps([4, 8]).stages([2, 3])`."""

    choices: tuple[tuple[str, tuple[Any, ...]], ...] = ()

    @staticmethod
    def of(choices: Mapping[str, Sequence[Any]]) -> Space:
        """A space from a mapping, in the spelling BM, BN, BK, BD or m, n, k, d."""
        found = Space()
        for name, values in choices.items():
            if name not in _SPELLINGS:
                raise AutotuneError(
                    f"unknown choice {name!r} in a schedule space", hint=f"choices are {', '.join(_SPELLINGS)}"
                )
            found = found._adding(_SPELLINGS[name], values)
        return found

    def _adding(self, name: str, values: Any) -> Space:
        listed = _listed(values)
        if not listed:
            raise AutotuneError(f"no values for {name} in a schedule space", hint="give at least one")
        accepts = f"one of {', '.join(SWIZZLES)}" if name == "swizzle" else "a positive integer"
        for value in listed:
            if not (value in SWIZZLES if name == "swizzle" else _is_size(value)):
                raise AutotuneError(
                    f"{name} of a schedule space is {accepts}, got {value!r}", hint="leave that value out"
                )
        return Space((*(entry for entry in self.choices if entry[0] != name), (name, listed)))

    def block(self, *sizes: Any, **named: Any) -> Space:
        found = self
        for name, values in (*zip(BLOCK_AXES, sizes, strict=False), *named.items()):
            if name not in BLOCK_AXES:
                raise AutotuneError(f"unknown block axis {name!r}", hint=f"axes are {', '.join(BLOCK_AXES)}")
            found = found._adding(name, values)
        return found

    def k(self, values: Any) -> Space:
        return self._adding("k", values)

    def warps(self, values: Any) -> Space:
        return self._adding("warps", values)

    def stages(self, values: Any) -> Space:
        return self._adding("stages", values)

    def vector(self, values: Any) -> Space:
        return self._adding("vector", values)

    def swizzle(self, values: Any) -> Space:
        return self._adding("swizzle", values)

    def narrowed(self, fixed: Schedule) -> Space:
        """The space without the choices that a schedule has made."""
        made = {name: getattr(fixed, name) for name in ("warps", "stages", "vector", "swizzle", "d")}
        made |= dict(zip(("m", "n", "k"), fixed.block or (), strict=False))
        taken = {name for name, value in made.items() if value is not None}
        # A block is chosen as a whole.
        left_out = taken.union(("m", "n", "k") if fixed.block is not None else ())
        chosen = tuple((name, (made[name],)) for name in made if name in taken)
        return Space((*(entry for entry in self.choices if entry[0] not in left_out), *chosen))

    def __iter__(self) -> Iterator[Schedule]:
        """The valid points, first choices first."""
        names = [name for name, _ in self.choices]
        for values in itertools.product(*(listed for _, listed in self.choices)):
            point = _point(dict(zip(names, values, strict=True)))
            if point is not None:
                yield point

    def __len__(self) -> int:
        return self.count()

    def count(self, width: int | None = None) -> int:
        """How many points are valid: at all, or for rows of a width."""
        return _count(self, width)

    def first(self) -> Schedule:
        """The first valid point."""
        for point in self:
            return point
        raise AutotuneError(
            "the schedule space has no valid point",
            story=[f"{name}: {list(values)}" for name, values in self.choices],
            hint="add smaller blocks, or powers of two for warps and vector",
        )


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _listed(values: Any) -> tuple[Any, ...]:
    return (values,) if isinstance(values, str) or not hasattr(values, "__iter__") else tuple(values)


def space() -> Space:
    """An empty space, to be filled by `.block(...)`, `.warps([...])` and so on."""
    return Space()


@lru_cache(maxsize=256)
def _count(space: Space, width: int | None) -> int:
    return sum(width is None or point.serves(width) for point in space)


def _point(chosen: Mapping[str, Any]) -> Schedule | None:
    block = [chosen[axis] for axis in ("m", "n", "k") if axis in chosen]
    if ("n" in chosen and "m" not in chosen) or ("k" in chosen and "n" not in chosen):
        return None
    rest = {name: value for name, value in chosen.items() if name not in ("m", "n", "k")}
    try:
        return Schedule(block=tuple(block) or None, **rest)
    except ResourceError:
        return None
