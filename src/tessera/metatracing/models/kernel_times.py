"""Times of kernels: fits by families of programs, kept on the disk, and the errors of the gains that they predict."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from itertools import permutations
from math import exp, log
from typing import Any, NamedTuple

from tessera.errors import TesseraError
from tessera.metatracing.models.fitting import LEAST_ROWS, Fitted, fit
from tessera.metatracing.models.work_features import FUNCTIONS, START, Machine, ModelledProgram

HELPS = 1.02
"""From this ratio on something counts as faster."""
_MOST_ERRORS = 400
SHORT = 12e-6
_OLDER = {'"turns"': '"iterations"', "cuda agents": "cuda warp groups"}
"""Names of amounts and families in files of earlier versions."""
FEW = 8
"""Gains that have to be known before there is an interval."""


class Measured(NamedTuple):
    """A program that was measured; those of one group are the same problem."""

    program: ModelledProgram
    seconds: float
    group: Hashable


class Prediction(NamedTuple):
    """Seconds, and between which ones 95 % of such are."""

    seconds: float
    low: float
    high: float
    parts: Mapping[str, float]
    family: str


@dataclass(frozen=True)
class Gain:
    """How much faster one program is than another: the expected ratio, an interval of 95 %, and how likely it helps."""

    ratio: float
    low: float
    high: float
    confidence: float


@dataclass(frozen=True)
class KernelTimes:
    """Fits of one machine.

    `facts` has the gains of knowing all sizes, by family: logarithms of open over assumed, sorted. `pairs` has, for two
    families, how far predicted gains were off: logarithms, sorted. `copies` are seconds that a copy takes always, and
    for each byte: of elements that lie together, and of those that lie apart.
    """

    machine: Machine
    fits: Mapping[str, Fitted]
    pairs: Mapping[str, tuple[float, ...]] = field(default_factory=dict[str, tuple[float, ...]])
    facts: Mapping[str, tuple[float, ...]] = field(default_factory=dict[str, tuple[float, ...]])
    copies: tuple[float, float, float] | None = None

    def knows(self, program: ModelledProgram) -> bool:
        return program.family(self.machine) in self.fits

    def predict(self, program: ModelledProgram) -> Prediction:
        """How long a program takes."""
        family = program.family(self.machine)
        found = self.fits.get(family)
        if found is None:
            raise TesseraError(
                f"there is no model of {family} programs on {self.machine.name or self.machine.kind}",
                hint="calibrate one: KernelTimes.calibrated(machine, measured)",
            )
        amounts = program.amounts(self.machine)
        seconds = found.seconds(amounts)
        if program.assumed and (known := self.facts.get(_facts_key(family, seconds))):
            seconds /= exp(known[len(known) // 2])
        return Prediction(seconds, *found.interval(seconds), found.parts(amounts), family)

    def beforehand(self, passes: int, nbytes: int, *, far: bool = False) -> float:
        """About how long it takes to copy or cast arrays first: so many of them, of so many bytes in all."""
        if self.copies is None:
            return 0.0
        always, near, apart = self.copies
        return passes * always + nbytes * (apart if far else near)

    def gain(self, now: ModelledProgram, then: ModelledProgram, extra: float = 0.0) -> Gain:
        """The gain of another program of the same problem, with so many seconds beside it."""
        before, after = self.predict(now), self.predict(then)
        expected = log(before.seconds / (after.seconds + extra))
        if now.assumed != then.assumed and now.work is then.work:
            known = self.facts.get(_facts_key(before.family, before.seconds), ())
            errors = tuple(expected - one for one in known)[::-1]
        else:
            errors = self.pairs.get(f"{before.family} > {after.family}", ())
        if len(errors) < FEW:
            return Gain(exp(expected), 0.0, float("inf"), 0.5)
        low, high = errors[int(0.025 * (len(errors) - 1))], errors[int(0.975 * (len(errors) - 1))]
        # The part of cases that gain if the prediction is off as others were.
        helping = bisect_left(errors, expected - log(HELPS)) / len(errors)
        return Gain(exp(expected), exp(expected - high), exp(expected - low), helping)

    # Calibrating

    @staticmethod
    def calibrated(machine: Machine, measured: Sequence[Measured]) -> KernelTimes:
        """Fits to programs that were measured; families with few of them are left out."""
        fits: dict[str, Fitted] = {}
        errors: dict[int, float] = {}
        families: dict[str, list[int]] = {}
        for index, one in enumerate(measured):
            if not one.program.assumed:
                families.setdefault(one.program.family(machine), []).append(index)
        for family, indices in families.items():
            if len(indices) < LEAST_ROWS:
                continue
            rows = [measured[index].program.amounts(machine) for index in indices]
            groups = [measured[index].group for index in indices]
            found = fit(
                rows, [measured[index].seconds for index in indices], START[family.removesuffix(FUNCTIONS)], groups
            )
            fits[family] = found
            errors.update(zip(indices, found.errors, strict=True))
        return KernelTimes(machine, fits, _pairs(machine, measured, errors), _facts(machine, measured))

    # Keeping

    def written(self) -> str:
        return json.dumps(
            {
                "machine": [self.machine.kind, self.machine.units, self.machine.name],
                "fits": {name: one.written() for name, one in self.fits.items()},
                "pairs": self.pairs,
                "facts": self.facts,
                "copies": self.copies,
            }
        )

    @staticmethod
    def read(text: str) -> KernelTimes:
        """The model that `written` wrote; ValueError for any other text."""
        try:
            for old, new in _OLDER.items():
                text = text.replace(old, new)
            found: Any = json.loads(text)
            kind, units, name = found["machine"]
            return KernelTimes(
                Machine(str(kind), int(units), str(name)),
                {str(family): Fitted.read(one) for family, one in found["fits"].items()},
                {str(pair): tuple(map(float, one)) for pair, one in found["pairs"].items()},
                {str(family): tuple(map(float, one)) for family, one in found["facts"].items()},
                None if found["copies"] is None else _three(found["copies"]),
            )
        except (ArithmeticError, LookupError, RecursionError, TypeError, AttributeError) as error:
            raise ValueError(f"not a model: {error}") from None


def _pairs(machine: Machine, measured: Sequence[Measured], errors: Mapping[int, float]) -> dict[str, tuple[float, ...]]:
    """Errors of predicted gains between programs of one problem, by fits that had not seen it."""
    groups: dict[Hashable, list[int]] = {}
    for index in errors:
        groups.setdefault(measured[index].group, []).append(index)
    found: dict[str, list[float]] = {}
    for indices in groups.values():
        for one, other in permutations(indices, 2):
            name = f"{measured[one].program.family(machine)} > {measured[other].program.family(machine)}"
            found.setdefault(name, []).append(errors[one] - errors[other])
    return {name: _thinned(several) for name, several in found.items()}


def _facts(machine: Machine, measured: Sequence[Measured]) -> dict[str, tuple[float, ...]]:
    """The gains of knowing all sizes: pairs of programs that differ in nothing else."""
    found: dict[str, list[float]] = {}
    for one in measured:
        if one.program.assumed:
            for other in measured:
                if other.group == one.group and not other.program.assumed and _alike(one.program, other.program):
                    key = _facts_key(one.program.family(machine), other.seconds)
                    found.setdefault(key, []).append(log(other.seconds / one.seconds))
                    break
    return {family: _thinned(several) for family, several in found.items()}


def _three(found: Sequence[Any]) -> tuple[float, float, float]:
    first, second, third = map(float, found)
    return first, second, third


def _facts_key(family: str, seconds: float) -> str:
    """The key of `facts`: short programs, in which launching takes most of the time, have their own."""
    return f"{family}, short" if seconds < SHORT else family


def _alike(one: ModelledProgram, other: ModelledProgram) -> bool:
    def of(program: ModelledProgram) -> tuple[object, ...]:
        work = program.work
        return program.rows, program.warps, work.grid, work.columns, work.bits, work.far_arguments

    return of(one) == of(other)


def _thinned(values: Iterable[float]) -> tuple[float, ...]:
    """Sorted, and so many of them as are worth keeping."""
    sorted_ = sorted(values)
    step = max(1, len(sorted_) // _MOST_ERRORS)
    return tuple(round(one, 5) for one in sorted_[step // 2 :: step])


@lru_cache(maxsize=8)
def shipped(name: str) -> KernelTimes | None:
    """The model of a machine that came with the package; None where there is none."""
    try:
        text = resources.files("tessera.metatracing.models").joinpath("calibrated", f"{name}.json").read_text("utf-8")
        return KernelTimes.read(text)
    except (FileNotFoundError, ValueError):
        return None
