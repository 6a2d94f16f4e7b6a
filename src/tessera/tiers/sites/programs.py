"""Programs in use, the entries by which calls find them, and what is counted about both."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Sequence
from math import isfinite
from statistics import median
from typing import TYPE_CHECKING, Any

from tessera.runtime.tensor.meta import Meta
from tessera.runtime.tensor.tensor import Tensor
from tessera.tiers.client import Call, Compiled, GuardType, Level, Runner, RuntimeGuard
from tessera.tiers.records import Described, ExecutionTier, LaunchFacts
from tessera.tiers.sites.event_log import Journal
from tessera.tiers.sites.hotness import Clock, Heat, system_clock

if TYPE_CHECKING:
    from tessera.tiers.sites.ab_test import Contest
    from tessera.tiers.sites.specialization_site import Region

_RECENT = 5
_MOST_TOLD = 8  # guards of one program
_MOST_BOUND = 8  # bindings that a program remembers
_MOST_ANSWERED = 64  # metas for which it remembers whether it serves them
_USUAL = (GuardType.SHAPE_GUARD, GuardType.STRIDE_GUARD)
Metas = tuple[Meta | None, ...]
"""Of a call's arguments; None for numbers."""


class Counts:
    """What happened, by kind, as PyPy's counters have it; tests assert these."""

    NAMES = (
        "traces",
        "compiles",
        "bridges",
        "generalisations",
        "deopts",
        "aborts",
        "contests",
        "switch_backs",
        "evictions",
        "invalidations",
        "loads",
    )

    def __init__(self, clock: Clock = system_clock) -> None:
        self._lock = threading.Lock()  # regions have a lock each, and all count here
        self.journal = Journal(clock)
        self.happened: Counter[str] = Counter()
        self.guard_failures: Counter[str] = Counter()
        """By the word of the guard that failed: `q.size[2]`."""
        self.calls: Counter[ExecutionTier] = Counter()
        self.timed: Counter[ExecutionTier] = Counter()
        """Calls that recorded ones stand for, and the nanoseconds of all those."""
        self.spent: Counter[ExecutionTier] = Counter()

    def forked(self) -> None:
        """In the child of a fork: whoever held the lock is not there."""
        self._lock = threading.Lock()

    def add(self, name: str, count: int = 1, *, region: str = "", what: str = "") -> None:
        assert name in self.NAMES, name
        with self._lock:
            self.happened[name] += count
        if name != "traces":  # those are in the rings of regions
            self.journal.add(name, region, what, amount=count)

    def ran(self, tier: ExecutionTier, failed: RuntimeGuard | None, count: int) -> None:
        """Counts calls, and those that ran at a lower tier because a guard failed."""
        with self._lock:
            self.calls[tier] += count
            if failed is not None and tier < ExecutionTier.TIER3_SPECIALIZED:
                self.happened["deopts"] += count
                self.guard_failures[failed.word] += count

    def took(self, tier: ExecutionTier, nanoseconds: int, count: int) -> None:
        with self._lock:
            self.timed[tier] += count
            self.spent[tier] += nanoseconds * count

    def __getitem__(self, name: str) -> int:
        return self.happened[name]


class Installed:
    """A program that calls may run. `gain` is how many nanoseconds a call saves against what it replaced.

    `holds` says of a call's numbers whether they are what it assumes; it is None for a program that assumes none.

    What is found out about metas, whether it serves them and what it is when it is bound to them, is remembered.
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
        "region",
        "spent",
        "uses",
    )

    def __init__(self, region: Region, level: Level, compiled: Compiled, *, is_bridge: bool = False) -> None:
        self.region = region
        self.level = level
        self.compiled = compiled
        self.nbytes = compiled.nbytes
        self.is_bridge = is_bridge
        self.gain = 0.0
        self.uses = 0
        self.spent = 0
        self.last_used = 0
        self.holds = numbers_hold(compiled.guards, region.numbers)
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

    def replaces(self, old: Installed) -> bool:
        """Whether nobody needs a program any more that this one was faster than: one that knows less serves others."""
        known, before = ((one.tier, len(one.compiled.guards)) for one in (self, old))
        return known <= before

    def guards_shown(self) -> str:
        """Guards in words: what a program knows beyond its kinds; of many sizes, the first."""
        told = sorted(self.compiled.guards, key=lambda guard: guard.guard_type in _USUAL)
        more = f" and {len(told) - _MOST_TOLD} more" if len(told) > _MOST_TOLD else ""
        return ", ".join(map(str, told[:_MOST_TOLD])) + more if told else "nothing"

    def __repr__(self) -> str:
        return f"<program {self.region.name}, {self.level}>"


def _metas(values: Sequence[Any]) -> Metas:
    return tuple([value.meta if isinstance(value, Tensor) else None for value in values])


def _remember(known: dict[Metas, Any], metas: Metas, found: Any, most: int) -> None:
    if len(known) >= most:
        known.clear()
    known[metas] = found


class _EveryCall:
    """What every call by an entry looks at. It lies together, in front: caches are full of arrays then."""

    __slots__ = ("holds", "left", "run", "tier", "unchanged")

    def __init__(self, program: Installed, run: Runner, unchanged: Callable[[], bool]) -> None:
        self.run = run
        self.holds = program.holds
        self.unchanged = unchanged
        self.tier: ExecutionTier = program.tier
        self.left = 0


class Entry(_EveryCall):
    """What a call with certain metas leads to: a program bound to them, whether it serves the numbers, and what if not.

    `left` counts down the calls to the next recorded one, of `period` that are not; `pace` is what that should be by
    how long calls take. `failed` is the guard because of which this is not a program of the highest tier. `awaited`:
    new programs wait for calls of this entry to compete on.
    """

    __slots__ = (
        "awaited",
        "call",
        "calls",
        "contest",
        "facts",
        "failed",
        "heat",
        "is_native",
        "is_stale",
        "other",
        "pace",
        "period",
        "program",
        "recent",
        "region",
        "rival",
        "seen",
    )

    def __init__(self, region: Region, program: Installed, run: Runner, call: Call, half_life: float) -> None:
        super().__init__(program, run, region.unchanged)
        self.region = region
        self.program = program
        self.is_native = program.compiled.is_native
        self.call = call
        self.other: Entry | None = None
        self.failed: RuntimeGuard | None = None
        self.contest: Contest | None = None
        self.rival: tuple[Installed, float] | None = None
        self.facts: LaunchFacts | None = None
        self.awaited = False
        self.is_stale = False  # nobody finds it any more; who has it may still run it
        self.heat = Heat(half_life)
        self.recent: deque[int] = deque(maxlen=_RECENT)
        self.period = 0
        self.pace = 0
        self.calls = 0
        self.seen = 0

    @property
    def described(self) -> Described:
        return self.call.described

    def follow(self, before: Entry) -> None:
        """Takes the place of an entry for the same metas: how often and for how long they were called goes on.

        So does how often they are recorded: callers wait for that.
        """
        self.heat, self.calls, self.seen, self.pace = before.heat, before.calls, before.seen, before.pace

    def for_numbers(self, numbers: Sequence[Any]) -> Entry:
        """This entry, or the one behind it that serves these numbers; the last of them serves all."""
        entry = self
        while entry.holds is not None and entry.other is not None and not entry.holds(*numbers):
            entry = entry.other
        return entry

    def has(self, program: Installed) -> bool:
        """Whether calls by this entry may run a program."""
        entry: Entry | None = self
        while entry is not None:
            if entry.program is program:
                return True
            entry = entry.other
        return False

    @property
    def unrecorded(self) -> int:
        """Calls since the last recorded one; some are missed where another thread counts down at the same moment."""
        return max(0, self.period - max(self.left, 0))

    @property
    def uncounted(self) -> float:
        """Nanoseconds of these, if they took as long as those that were recorded: not in the heat yet."""
        return self.unrecorded * self.typical

    @property
    def typical(self) -> float:
        """Nanoseconds of a call, by the last recorded ones."""
        return median(self.recent) if self.recent else 0.0

    def hurry(self, calls: int = 0) -> None:
        """Lets no more than so many calls pass before the next recorded one."""
        if calls < self.left:
            self.period, self.left = self.unrecorded + calls, calls

    def skip(self) -> None:
        """This call is not recorded after all; the next one may be."""
        self.period, self.left = self.unrecorded + 1, 0

    def settle(self) -> int:
        """How many calls there were since the last recorded one; whoever asks counts them."""
        count = self.unrecorded
        self.period = self.left = 0
        self.calls += count
        return count

    def restart(self, period: int) -> int:
        """Begins to count down anew, behind a recorded call; how many there were since the last one."""
        count = self.unrecorded
        self.period = self.left = period
        self.calls += count + 1
        return count


def numbers_hold(guards: Sequence[RuntimeGuard], places: Sequence[int]) -> Callable[..., bool] | None:
    """A quick function of a call's numbers, which lie at these places of its arguments; None where nothing is asked.

    Classes are compared before; so only zeros need a look at their signs, and NaN is equal to nothing.
    """
    asked = [guard for guard in guards if guard.is_about_a_number]
    if not asked:
        return None
    names = [f"number{place}" for place in places]
    tests: list[str] = []
    for guard in asked:
        name = f"number{guard.place}"
        as_text = isinstance(guard.params, float) and (guard.params == 0.0 or not isfinite(guard.params))
        tests.append(f"repr({name}) == {repr(guard.params)!r}" if as_text else f"{name} == {guard.params!r}")
    return eval(f"lambda {', '.join(names)}: {' and '.join(tests)}")
