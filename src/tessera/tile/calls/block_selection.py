"""Chooses block sizes by a model of the target, for kernels without a schedule; see docs/hopper.md, "Which block".

A kernel is traced once to look at, with sizes that can be told from all others. The model finds a few blocks, with
fewer and fewer rows. A call takes the one whose program instances are done first, for as many rows as it has: so
however many lengths there are, there are few programs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from itertools import product
from math import prod
from types import FunctionType
from typing import Any

from tessera.compiler.target import Target
from tessera.errors import TesseraError
from tessera.runtime.cache.store import UNREADABLE
from tessera.runtime.tensor.tensor import Tensor
from tessera.tile.calls.arguments import look_up
from tessera.tile.calls.guarded_kernel import GuardedKernel
from tessera.tile.calls.instance import Instance
from tessera.tile.calls.program_cache import Kept, lines_of
from tessera.tile.calls.settings import Settings
from tessera.tile.language.schedule import Schedule

MULTIPROCESSORS = 132
"""Multiprocessors of the GPU that programs are written for where there is none."""
DOUBT = 1.04
"""How much faster the model has to find another block than the best for many instances: so far off it may be. Where it
found one 4.7 % faster, for 1000 causal rows, that was 3 % faster on an H200."""
_MOST_KEYS = 512  # that a kernel remembers; looking at it again takes a moment

Instances = Callable[[tuple[int, ...]], int | None]
Trace = Callable[[Schedule], Instance]


@dataclass(frozen=True)
class Candidate:
    """A block, and how long the model says that a program instance of it takes.

    One that is `counted` has fewer columns than others: it is taken where the grid tells how many instances there are.
    """

    block: tuple[int, ...]
    clocks: float
    counted: bool = False

    def total(self, rows: int, batch: int, multiprocessors: int) -> float:
        """Clocks until all program instances are done."""
        instances = -(-rows // self.block[0]) * batch
        return -(-instances // multiprocessors) * self.clocks


@dataclass
class Choice:
    """The blocks of a kernel for some of its arguments; none where the default has to do.

    `looked_at` is the program without code that they were found with: it knows which arguments it serves.
    """

    looked_at: GuardedKernel
    driver: str
    """The path of the array whose rows are divided among program instances."""
    candidates: list[Candidate]
    kept: Kept | None = None
    """Where other processes find it."""

    def block_for(
        self, given: Mapping[str, Any], multiprocessors: int, instances: Instances | None = None
    ) -> tuple[int, ...] | None:
        """The block for a call; `instances` counts those of a block, where the grid is known."""
        if not self.candidates:
            return None
        if instances is not None and any(one.counted for one in self.candidates):
            counts = [(one, instances(one.block)) for one in self.candidates]
            waves = [(one, -(-count // multiprocessors)) for one, count in counts if count is not None]
            if len(waves) == len(counts):
                return min(waves, key=lambda pair: pair[1] * pair[0].clocks)[0].block
        if not (uncounted := [one for one in self.candidates if not one.counted]):
            return None
        shape = look_up(self.driver, given).shape
        rows, batch = shape[max(0, len(shape) - 2)], prod(shape[:-2])
        first = uncounted[0]
        best = min(uncounted, key=lambda one: one.total(rows, batch, multiprocessors))
        clocks, least = (one.total(rows, batch, multiprocessors) for one in (first, best))
        return best.block if least * DOUBT < clocks else first.block

    def ranked(self, given: Mapping[str, Any], multiprocessors: int) -> list[tuple[int, ...]]:
        """All blocks for a call: the one that it takes, then the others as the model has them."""
        first = self.block_for(given, multiprocessors)
        if first is None:
            return []
        shape = look_up(self.driver, given).shape
        rows, batch = shape[max(0, len(shape) - 2)], prod(shape[:-2])
        uncounted = [one for one in self.candidates if not one.counted]
        others = sorted(uncounted, key=lambda one: one.total(rows, batch, multiprocessors))
        return [first, *(one.block for one in others if one.block != first)]

    def refuse(self, block: tuple[int, ...]) -> None:
        """Strikes out a block that did not come out as the model thought."""
        self.candidates = [one for one in self.candidates if one.block != block]
        self.keep()

    def keep(self) -> None:
        """Writes it to the disk."""
        if self.kept is not None:
            said = {"driver": self.driver, "candidates": [astuple(one) for one in self.candidates]}
            self.kept.put(self.looked_at, json.dumps(said).encode())

    @staticmethod
    def found(kept: Kept, given: Mapping[str, Any]) -> Choice | None:
        """One that this or another process has kept for such arguments."""
        if (found := kept.find_behind(given)) is None:
            return None
        try:
            said = json.loads(found[1])
            candidates = [
                Candidate(tuple(map(int, block)), float(clocks), bool(counted))
                for block, clocks, counted in said["candidates"]
            ]
            return Choice(found[0], str(said["driver"]), candidates, kept)
        except UNREADABLE:
            return None


class Choices:
    """The choices of one kernel."""

    def __init__(self) -> None:
        self._found: dict[object, list[Choice]] = {}

    def find(
        self,
        key: object,
        given: Mapping[str, Any],
        static: Mapping[str, Any],
        trace: Trace,
        compiler: Target,
        fixed: tuple[int, ...] = (),
        keep: Callable[[], Kept | None] = lambda: None,
        *,
        make: bool = True,
    ) -> Choice | None:
        """The choice for arguments, made if there is none; None where the kernel cannot even be looked at.

        Blocks begin with the sizes that are `fixed`. `keep` says where choices of the kernel lie on the disk. Without
        `make`, one that would have to be made is None, too: looking at a kernel takes a compiler.
        """
        if len(self._found) >= _MOST_KEYS:
            self._found.clear()
        known = self._found.setdefault(key, [])
        found = next((one for one in known if one.looked_at.values_for(given) is not None), None)
        if found is None:
            kept = keep()
            found = None if kept is None else Choice.found(kept, given)
            if found is None and make and (found := _made(given, static, trace, compiler, fixed)) is not None:
                found.kept = kept
                found.keep()
            if found is not None:
                known.append(found)
        return found


def is_chosen(settings: Settings) -> bool:
    """Whether blocks are chosen for programs of such settings. With checks, programs are not warp-specialized."""
    return settings.compiler.models_blocks(settings.level) and not settings.checks


def leaves_open(schedule: Schedule | None) -> bool:
    """Whether a schedule leaves blocks to be chosen: one with warps or stages was written for some block."""
    return schedule is None or (not schedule.block and schedule.warps is None and schedule.stages is None)


def multiprocessors_of(given: Mapping[str, Any]) -> int:
    """The number of multiprocessors of the GPU where arrays lie."""
    device = next((value.device for value in given.values() if isinstance(value, Tensor)), None)
    if device is None or not device.is_accelerator:
        return MULTIPROCESSORS
    from tessera.runtime.cuda.context import Context

    return Context.of(device.index).properties.multiprocessors


def came_out(program: GuardedKernel) -> bool:
    """Whether a program is warp-specialized."""
    plan = None if program.executable is None else program.executable.plan
    return plan is not None and plan.device is not None and plan.device.persistent > 0


def leaves_depth_open(schedule: Schedule, function: FunctionType) -> bool:
    """Whether only `k` is left to be chosen, and a kernel seems to ask for it."""
    given = schedule.block is not None and len(schedule.block) == 2 and leaves_open(schedule.with_block())
    return given and "k" in function.__code__.co_names


def _made(
    given: Mapping[str, Any], static: Mapping[str, Any], trace: Trace, compiler: Target, fixed: tuple[int, ...]
) -> Choice | None:
    probe = _probe(_sizes(given, static))
    if probe is None:
        return None
    try:
        instance = trace(Schedule(block=probe))
    except TesseraError:
        # It does not take every block. Under its own it may still run; if not, that call says why.
        return None
    values = [look_up(path, given) for path in instance.paths]
    lines = lines_of(values)
    along = {index: lines.get(index, int(index >= len(values))) for index in range(len(values) + len(instance.outputs))}
    driver = next(path for path, value in zip(instance.paths, values, strict=True) if isinstance(value, Tensor))
    looked_at = replace(GuardedKernel.of(instance, None, lines=lines), instance=None)
    return Choice(looked_at, driver, _candidates(instance, compiler, probe, along, fixed))


def _candidates(
    instance: Instance, compiler: Target, probe: tuple[int, int, int], along: Mapping[int, int], fixed: tuple[int, ...]
) -> list[Candidate]:
    """The blocks worth having: the best of each number of rows, and first the one that is best for many instances."""
    from tessera.interpreters.core.engine import symbol_in
    from tessera.ir.tile import dialect as tile
    from tessera.transforms.pipelining.exchange_axes import exchange_axes, exchanged_axes

    function = symbol_in(instance.module.clone(), instance.name, tile.FuncOp)
    exchange_axes(function, dict(exchanged_axes(function, along)))
    row_aligned = [index for index, axis in along.items() if axis]
    return [Candidate(*found) for found in compiler.modelled_blocks(function, probe, row_aligned, fixed)]


def _probe(sizes: set[int]) -> tuple[int, int, int] | None:
    """A block with sizes that occur nowhere else; None where all that are tried are taken.

    Elements of any type are multiplied, and transposed, in blocks of such sizes.
    """
    for m, n, k in product((128, 64, 192), (96, 32, 160, 224), (288, 352, 416, 480)):
        if not sizes & {m, n, k}:
            return m, n, k
    return None


def _sizes(given: Mapping[str, Any], static: Mapping[str, Any]) -> set[int]:
    """The sizes that tiles of a kernel may have besides those of its block."""
    return set(_numbers((*given.values(), *static.values())))


def constants_of(function: FunctionType) -> dict[str, int]:
    """The whole numbers that a kernel's source has for itself, and their halves: it may have tiles of such sizes."""
    code = function.__code__
    held = [*code.co_consts, *(function.__globals__.get(name) for name in code.co_names)]
    numbers = {one for one in held if type(one) is int}
    return {f"constant {one}": one for number in numbers for one in (number, number // 2)}


def _numbers(values: Sequence[Any]) -> Iterator[int]:
    for value in values:
        if isinstance(value, Tensor):
            yield from value.shape
        elif type(value) is int:
            yield value
        elif not callable(value):
            yield from _numbers([inner for inner in getattr(value, "__dict__", {}).values() if _is_plain(inner)])


def _is_plain(value: Any) -> bool:
    return isinstance(value, Tensor) or type(value) is int
