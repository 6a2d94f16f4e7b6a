"""A region: one client with arguments of the same kinds, and its programs at all tiers.

All tiers are one pipeline with more facts. A call takes the program that knows most and whose guards hold; guards are
asked before anything runs, so what a refused call runs instead finds its outputs untouched. What a region has seen is
in `recording.py`, when it climbs in `tier_policy.py`, and how programs compete in `trials.py`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any, Protocol

from tessera.errors import DeviceError, ResourceError
from tessera.runtime.program.overlap import OverlapError
from tessera.runtime.tensor.tensor import Tensor
from tessera.tiers.client import Call, Client, Compiled, Level, Runner, RuntimeGuard
from tessera.tiers.logs import complain, log, told
from tessera.tiers.records import ExecutionTier
from tessera.tiers.sites.ab_test import Contender, Contest, Turn
from tessera.tiers.sites.backoff import Lessons, kind_of
from tessera.tiers.sites.entries import Outcome, SiteEntry, Values
from tessera.tiers.sites.first_program import first_program
from tessera.tiers.sites.programs import Installed
from tessera.tiers.sites.recording import Recording, Sampled
from tessera.tiers.sites.request import Request
from tessera.tiers.sites.site import SiteRuntime
from tessera.tiers.sites.tier_policy import Climbing
from tessera.tiers.sites.timing import Reading, timer_for
from tessera.tiers.sites.trials import Newcomers
from tessera.tiers.stand_ins import standing_in

TIER1, TIER2, TIER3 = ExecutionTier
FAULTS = (ResourceError, DeviceError, MemoryError, OverlapError)
"""What a program may fail with before it has begun: another one, that needs less, may do."""
_MOST_BASES = 64  # programs without assumptions that a region keeps: one for each width, say
_MOST_RENEWED = 4  # entries that find their new program at once; others when they are called


class Callers(Protocol):
    """The calls of a client, as its sites see them."""

    @property
    def client(self) -> Client: ...

    def again(self, values: Values, call: Call) -> Outcome:
        """A call that could not be made by the entry that it had."""
        ...

    def forget_stale(self, gone: Sequence[SiteEntry], renewed: int = 0) -> None:
        """Drops entries that a site has given up, or puts others in their places."""
        ...


class Region:
    """The programs for calls that agree in all that facts do not speak of."""

    def __init__(self, runtime: SiteRuntime, tiered: Callers, call: Call) -> None:
        self.runtime = runtime
        self.tiered = tiered
        self.client = tiered.client
        self.name = self.client.name
        self.config = runtime.config
        self.counts = runtime.counts
        self.clock = runtime.clock
        self.lock = threading.RLock()
        self.programs: list[Installed] = []  # those that know most first
        self.entries: list[SiteEntry] = []
        self.recording = Recording(self, self._noted)
        self.ring, self.heat = self.recording.ring, self.recording.heat
        lessons = Lessons(self.config.half_life)
        self.newcomers = Newcomers(self, self.recording, lessons)
        self.climbing = Climbing(self, self.recording, self.newcomers, lessons)
        self.looking = 0  # nanoseconds that the call which is coming took to find its entry
        place = next((value.device for value in call.values if isinstance(value, Tensor)), None)
        self.device_kind = "cpu" if place is None else place.kind
        self.timer = timer_for(place, self.clock)
        self.numbers = tuple(place for place, value in enumerate(call.values) if not isinstance(value, Tensor))
        self.first = standing_in(call, call.values)
        self.unchanged = self.client.unchanged(call)
        self.climbs = self.client.compiles(call)
        self.identity = self.client.identity(call) if self.config.persist and self.climbs else None
        self._load(call)

    @property
    def is_working(self) -> bool:
        """Whether something is being compiled, waits for its calls, or is being compared."""
        awaited = any(entry.awaited for entry in self.entries)
        return bool(self.climbing.requests or self.newcomers.contests or awaited)

    def is_coming(self, entry: SiteEntry) -> bool:
        """Whether programs of Tier 3 are being compiled for such arguments."""
        return self.climbing.is_coming(entry)

    def _noted(self, entry: SiteEntry, turn: Turn | None, took: int) -> None:
        self.newcomers.note(entry, turn, took)

    # Finding programs

    def entry_for(self, call: Call, kept: Call | None = None) -> SiteEntry:
        """The entry for calls with such metas: a program whose guards hold, and behind it what serves other numbers.

        `kept` is the call without the memory of its user, where that is there already.
        """
        with self.lock:
            kept = standing_in(call, call.values) if kept is None else kept
            chain: list[SiteEntry] = []
            failed: RuntimeGuard | None = None
            for program in list(self.programs):
                broken = program.broken_guard(call.values)
                if broken is not None:
                    failed = failed or broken
                    continue
                made = self._bound(program, call, kept)
                if made is None:
                    continue
                made.failed = failed
                chain.append(made)
                if made.holds is None:
                    break
                failed = failed or next(guard for guard in program.compiled.guards if guard.is_about_a_number)
            if not chain or chain[-1].holds is not None:
                base = self._bound(self._base(call), call, kept)
                assert base is not None
                base.failed = failed
                chain.append(base)
            for entry, other in pairwise(chain):
                entry.other = other
            chain[0].rival = self.newcomers.rival(kept.described)
            self.newcomers.resume(chain[0])
            for entry in chain:
                self.newcomers.expect(entry)
            self.entries += chain
            self.climbing.recall(chain[0])
            if (first := chain[0]).failed is not None:
                found = first.failed.found(call.values)
                self.counts.journal.add("guard", self.name, f"{first.failed}, it is {found}")
                log("guards", f"{self.name}: {first.failed} does not hold, it is {found}; {first.program.level} runs")
            return first

    def runner(self, program: Installed, call: Call) -> Runner | None:
        """A program bound to a call's metas; None for one that fails at that, which is not tried again."""
        try:
            return program.bind(call)
        except FAULTS as error:
            if program.tier is TIER1:
                raise
            self.fail(program, error)
            return None

    def _bound(self, program: Installed, call: Call, kept: Call) -> SiteEntry | None:
        run = self.runner(program, call)
        return None if run is None else SiteEntry(self, program, run, kept, self.config.half_life)

    def _base(self, call: Call) -> Installed:
        """Tier 1 for a call: from the disk, or compiled so that there is a result soon."""
        for program in self.programs:
            if program.tier is TIER1 and program.serves(call.values):
                return program
        compiled, level = first_program(self, call)
        bases = [program for program in self.programs if program.tier is TIER1]
        if len(bases) >= _MOST_BASES:
            self.drop(min(bases, key=lambda program: program.last_used))
        return self.install(Installed(self, level, compiled))

    def _load(self, call: Call) -> None:
        """Starts where another process has ended."""
        for level in [] if self.identity is None else self.runtime.manager.remembered(self.identity):
            try:
                found = self.client.find(call, level)
            except Exception as error:
                complain(f"{self.name}: a program of another process cannot be used: {told(error)}")
                continue
            if found is not None:
                self.counts.add("loads", region=self.name, what=str(level))
                if level.tier is TIER3:
                    self.climbing.took(level)
                    self.climbing.lessons.note(kind_of(level), True, self.clock())
                self.install(Installed(self, level, found))
                log("tiers", f"{self.name}: starts at {level}, as another process left it")

    def install(self, program: Installed) -> Installed:
        """Takes a program among those that new entries choose from."""
        program.last_used = self.clock()
        self.programs.append(program)
        self.programs.sort(key=lambda one: (-one.tier, -len(one.compiled.guards)))
        if program.tier is not TIER1:
            self.runtime.manager.admit(program)
        return program

    def take(self, program: Installed, replaced: Sequence[Installed] = ()) -> None:
        """Puts a program to use, also where others were that have been removed."""
        if program not in self.programs:
            self.install(program)
        if program.tier is TIER3:
            self.climbing.took(program.level)
        self._remember()
        served: list[SiteEntry] = []
        for entry in self.entries:
            broken = program.broken_guard(entry.call.values)
            if broken is None or any(map(entry.has, replaced)):
                served.append(entry)
            elif entry.failed is None and program.tier > entry.tier:
                self.recording.settle(entry)
                entry.failed = broken
        self._leave(served, renewed=_MOST_RENEWED)  # others have what they had: looking for it takes a while

    # Running

    def sampled(self, entry: SiteEntry, values: Values, given: Values) -> Outcome:
        """A call that is timed and recorded; its result, and the tier that it ran at. `given` is what programs take.

        A GPU waits for what is done before the launch, and works during what is done behind it.
        """
        clerk = self.runtime.clerk
        came, self.looking = self.clock() - self.looking, 0
        turn, stale = None, False
        if entry.contest is not None or entry.is_stale:
            # Who keeps the books may be at work for long: then this call is like others.
            if not self._locked(clerk.is_at_once):
                return self._unrecorded(entry, values, given)
            try:
                stale = entry.is_stale
                if entry.contest is not None and not stale:
                    turn = self._next(entry.contest, values)
            finally:
                self.lock.release()
        if stale:
            self._left(entry)
            return self.tiered.again(values, entry.call)
        contender = None if turn is None else turn.contender
        program = entry.program if contender is None else contender.program
        run = entry.run if contender is None else contender.run
        began = self.clock()
        try:
            result, took = self.timer.timed(run, given if program.compiled.is_native else values)
        except FAULTS as error:
            self._left(entry)
            return self.recover(entry, contender, error, values)
        # A GPU may be done before this is: whoever keeps the books does all that can be done there.
        before = self._counted(entry)
        if before is None:
            return result, program.tier
        if took is None:
            clerk.do(self._count, entry, before + 1)
            return result, program.tier
        numbers = [values[place] for place in self.numbers]
        clerk.do(self._note, entry, program, turn, before + 1, numbers, took, began - came)
        return result, program.tier

    def _next(self, contest: Contest, values: Values) -> Turn | None:
        """Whose turn it is; None where these are numbers that it was not made for. Metas are those of the entry."""
        turn = contest.next()
        holds = None if turn is None else turn.contender.program.holds
        return turn if holds is None or holds(*[values[place] for place in self.numbers]) else None

    def _left(self, entry: SiteEntry) -> None:
        """Counts the calls before one that another entry makes."""
        before = self._counted(entry)
        if before is not None:
            self.runtime.clerk.do(self._count, entry, before)

    def _locked(self, blocking: bool) -> bool:
        """Takes the lock, where it is free or worth waiting for."""
        try:
            return self.lock.acquire(blocking)  # by name it takes longer
        except BaseException:  # a signal that came with the lock: nobody else would let go of it
            with suppress(RuntimeError):
                self.lock.release()
            raise

    def _counted(self, entry: SiteEntry) -> int | None:
        """Begins to count down to the next recorded call; how many there were since the last one.

        None where somebody else keeps the books: this call is not recorded after all, but perhaps the next.
        """
        if not self._locked(self.runtime.clerk.is_at_once):
            entry.skip()
            return None
        try:
            return entry.restart(self.recording.period(entry))
        finally:
            self.lock.release()

    def given(self, values: Values) -> Values:
        """Arguments as programs take them that were compiled."""
        if self.client.takes_tensors:
            return values
        return tuple([value.geometry if isinstance(value, Tensor) else value for value in values])

    def _unrecorded(self, entry: SiteEntry, values: Values, given: Values) -> Outcome:
        try:
            result = entry.run(*(given if entry.is_native else values))
        except FAULTS as error:
            return self.recover(entry, None, error, values)
        entry.skip()
        return result, entry.tier

    def _count(self, entry: SiteEntry, count: int) -> None:
        with self.lock:
            self.recording.count(entry.program, entry, count)

    def _note(
        self,
        entry: SiteEntry,
        program: Installed,
        turn: Turn | None,
        calls: int,
        numbers: Sequence[Any],
        took: int | Reading,
        waited: int,
    ) -> None:
        """What a recorded call leads to: a record, perhaps the end of a contest, perhaps a request."""
        began = self.clock()
        described = list(entry.described)
        for place, number in zip(self.numbers, numbers, strict=True):
            described[place] = number
        call = Sampled(entry, program, turn, calls, tuple(described))
        with self.lock:
            self.recording.ran(call, took)
            recorded = self.clock()
            self.climbing.consider(entry, call.described)
            self.newcomers.begin(entry, call.described)
        self.runtime.manager.sweep()
        self.recording.overheads = recorded - began, waited + self.clock() - recorded
        if self.runtime.watch is not None:
            self.runtime.watch.recorded()

    def recover(self, entry: SiteEntry, contender: Contender | None, error: Exception, values: Values) -> Outcome:
        """A call whose program could not begin: the next tier down serves it."""
        program = entry.program if contender is None else contender.program
        if isinstance(error, OverlapError):
            # Its arrays overlap, as those of other calls may not: the kernel without tiers has a program for that.
            log("tiers", f"{self.name}: {error.message}: the program without tiers serves the call")
            return self.client.plainly(values, entry.call.context.static), TIER1
        if program.tier is TIER1 or not program.compiled.is_repeatable:
            raise error
        with self.lock:
            self.fail(program, error)
            if contender is not None:
                self.newcomers.withdraw(entry, contender)
        return self.tiered.again(values, entry.call)

    # What was compiled

    def compiled(self, request: Request, found: Sequence[tuple[Level, Compiled]]) -> None:
        """All that comes of a request is there."""
        self.climbing.compiled(request, found)

    def arrived(self, request: Request, level: Level, compiled: Compiled) -> None:
        """One of the programs of a request is there."""
        self.climbing.arrived(request, level, compiled)

    def aborted(self, level: Level, why: str) -> None:
        """Something could not be compiled: calls go on as they are."""
        self.counts.add("aborts", region=self.name, what=f"{level}: {why}")
        complain(f"{self.name}: {level} is given up: {why}")

    # Falling

    def drop(self, program: Installed) -> None:
        """Takes a program out of use; calls that had it find another."""
        with self.lock:
            self.newcomers.remove(program)
            if program in self.programs:
                self.remove(program)
                self.forget(program)

    def remove(self, program: Installed) -> None:
        """Takes a program from those that new entries choose from; who has it runs it until somebody says otherwise."""
        self.programs.remove(program)
        self.runtime.manager.released(program)
        if program.tier is TIER3:
            self.climbing.dropped()

    def let_go(self, program: Installed) -> None:
        """Drops a program on purpose: it is not looked for again until one like it is in use."""
        with self.lock:
            self.climbing.unlearn()
            self.drop(program)

    def fail(self, program: Installed, error: Exception) -> None:
        """Takes a program out of use that could not begin."""
        with self.lock:
            self.aborted(program.level, told(error))
            self.drop(program)

    def forked(self) -> None:
        """In the child of a fork: whoever held the lock is not there, and nobody answers what was asked."""
        self.lock = threading.RLock()
        self.climbing.requests = []

    def close(self) -> None:
        """Lets go of all programs: nobody calls this region any more."""
        with self.lock:
            self.climbs, self.climbing.requests = False, []
            self.newcomers.clear()
            for program in self.programs:
                self.runtime.manager.released(program)
            self.programs = []
            self.forget()

    def forget(self, program: Installed | None = None) -> None:
        """Lets calls look for their programs anew: those that had a certain one, or all."""
        with self.lock:
            if program is None:
                for one in self.programs:
                    one.let_go()
            self._leave([entry for entry in self.entries if program is None or entry.has(program)])

    def _leave(self, gone: Sequence[SiteEntry], renewed: int = 0) -> None:
        for entry in gone:
            self.recording.settle(entry)
            entry.is_stale = True
        self.entries = [entry for entry in self.entries if not entry.is_stale]
        self.tiered.forget_stale(gone, renewed)

    def collect(self) -> None:
        """Takes in what a GPU has done by now."""
        with self.lock:
            self.recording.collect()

    def unrecorded(self, tier: ExecutionTier) -> int:
        """Calls at a tier since the last recorded ones: those that nobody has counted yet."""
        with self.lock:
            return self.recording.unrecorded(tier)

    def told(self) -> Iterator[str]:
        """The region in words."""
        hot = self.heat.at(self.clock()) / 1e6
        calls = self.recording.calls + sum(map(self.unrecorded, ExecutionTier))
        yield f"{self.name}: {calls} calls, {hot:.1f} ms lately"
        for program in self.programs:
            guards = program.guards_shown()
            average = f", {program.spent / program.uses / 1e3:.1f} µs a call" if program.uses else ""
            bridge = ", a bridge" if program.is_bridge else ""
            yield f"  {program.level}{bridge}: {program.uses} calls{average}; guarded by {guards}"

    def _remember(self) -> None:
        """Tells the next process what this one found."""
        if self.identity is not None:
            self.runtime.manager.remember(self.identity, [one.level for one in self.programs if one.tier > TIER1])
