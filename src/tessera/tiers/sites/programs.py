"""Programs in use: compiled, behind their guards, and bound to the metas of calls."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any, Protocol

from tessera.runtime.tensor.meta import Meta
from tessera.runtime.tensor.tensor import Tensor
from tessera.tiers.client import Call, Client, Compiled, GuardType, Runner, RuntimeGuard, TierLevel
from tessera.tiers.records import ExecutionTier

_MOST_SHOWN = 8  # guards of one program
_MOST_BOUND = 8  # bindings that a program remembers
_MOST_ANSWERED = 64  # metas for which it remembers whether it serves them
_USUAL = (GuardType.SHAPE_GUARD, GuardType.STRIDE_GUARD)
Metas = tuple[Meta | None, ...]
"""Of a call's arguments; None for numbers."""


class ProgramSite(Protocol):
    """A specialization site as its programs and their manager see it."""

    name: str
    client: Client
    first: Call
    numbers: tuple[int, ...]
    lock: threading.RLock

    def drop(self, program: InstalledProgram) -> None:
        """Takes a program out of use; calls that had it find another."""
        ...

    def let_go(self, program: InstalledProgram) -> None:
        """Drops a program on purpose: it is not loaded again until one like it is in use."""
        ...


class InstalledProgram:
    """A program that calls may run. `gain` is how many nanoseconds a call saves against what it replaced.

    `holds` says whether a call's numbers are those that it assumes; it is None for a program that assumes none.

    Answers about metas, whether it serves them and its form bound to them, are cached.
    """

    __slots__ = (
        "_answers",
        "_bound",
        "compiled",
        "gain",
        "holds",
        "is_bridge",
        "last_used",
        "level",
        "nbytes",
        "site",
        "spent",
        "uses",
    )

    def __init__(self, site: ProgramSite, level: TierLevel, compiled: Compiled, *, is_bridge: bool = False) -> None:
        self.site = site
        self.level = level
        self.compiled = compiled
        self.nbytes = compiled.nbytes
        self.is_bridge = is_bridge
        self.gain = 0.0
        self.uses = 0
        self.spent = 0
        self.last_used = 0
        self.holds = numbers_hold(compiled.guards, site.numbers)
        self._answers: dict[Metas, RuntimeGuard | None] = {}
        self._bound: dict[Metas, Runner] = {}

    @property
    def tier(self) -> ExecutionTier:
        return self.level.tier

    def bind(self, call: Call) -> Runner:
        """The program for calls with such metas."""
        metas = _metas(call.values)
        run = self._bound.get(metas)
        if run is None:
            run = self.compiled.bind(call)
            _remember(self._bound, metas, run, _MOST_BOUND)
        return run

    def is_bound(self, call: Call) -> bool:
        """Whether it need not be bound to such metas again."""
        return _metas(call.values) in self._bound

    def let_go(self) -> None:
        """Forgets what it was bound to."""
        self._bound.clear()

    def note(self, now: int, nanoseconds: int, count: int) -> None:
        self.uses += count
        self.spent += nanoseconds * count
        self.last_used = now

    def broken_guard(self, values: Sequence[Any]) -> RuntimeGuard | None:
        """The first guard that does not hold, of those that are not about numbers."""
        metas = _metas(values)
        if metas in self._answers:
            return self._answers[metas]
        asked = (guard for guard in self.compiled.guards if not guard.is_about_a_number)
        broken = next((guard for guard in asked if not guard.check_function(values)), None)
        _remember(self._answers, metas, broken, _MOST_ANSWERED)
        return broken

    def serves(self, values: Sequence[Any]) -> bool:
        asked = (guard for guard in self.compiled.guards if guard.is_about_a_number)
        return self.broken_guard(values) is None and all(guard.check_function(values) for guard in asked)

    def replaces(self, old: InstalledProgram) -> bool:
        """Whether a slower program is not needed any more: a less specialized one still serves other calls."""
        known, before = ((one.tier, len(one.compiled.guards)) for one in (self, old))
        return known <= before

    def guards_shown(self) -> str:
        """The guards in words; of many, the first few."""
        guards = sorted(self.compiled.guards, key=lambda guard: guard.guard_type in _USUAL)
        more = f" and {len(guards) - _MOST_SHOWN} more" if len(guards) > _MOST_SHOWN else ""
        return ", ".join(map(str, guards[:_MOST_SHOWN])) + more if guards else "nothing"

    def __repr__(self) -> str:
        return f"<program {self.site.name}, {self.level}>"


def _metas(values: Sequence[Any]) -> Metas:
    return tuple([value.meta if isinstance(value, Tensor) else None for value in values])


def _remember(known: dict[Metas, Any], metas: Metas, found: Any, most: int) -> None:
    if len(known) >= most:
        known.clear()
    known[metas] = found


def numbers_hold(guards: Sequence[RuntimeGuard], indices: Sequence[int]) -> Callable[..., bool] | None:
    """A fast guard on a call's numbers, by their indices among the arguments; None where nothing is guarded.

    Classes are compared before; so only zeros need a look at their signs, and NaN is equal to nothing.
    """
    asked = [guard for guard in guards if guard.is_about_a_number]
    if not asked:
        return None
    names = [f"number{index}" for index in indices]
    tests: list[str] = []
    for guard in asked:
        name = f"number{guard.argument}"
        as_text = isinstance(guard.params, float) and (guard.params == 0.0 or not isfinite(guard.params))
        tests.append(f"repr({name}) == {repr(guard.params)!r}" if as_text else f"{name} == {guard.params!r}")
    return eval(f"lambda {', '.join(names)}: {' and '.join(tests)}")
