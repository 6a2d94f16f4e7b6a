"""A specialization site: one client with arguments of the same kinds, and its programs at all tiers.

All tiers are one pipeline with more facts. A call takes the most specialized program whose guards hold; guards are
checked before anything runs, so the program of a refused call finds its outputs untouched. The records of a site are
in `recording.py`, the decision to compile more in `tier_policy.py`, and how programs are compared in `trials.py`.
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
from tessera.tiers.client import Call, Client, Compiled, Runner, RuntimeGuard, TierLevel
from tessera.tiers.logs import log, summary_of, warn
from tessera.tiers.records import ExecutionTier
from tessera.tiers.sites.ab_test import ABTest, Contender, Round
from tessera.tiers.sites.backoff import Backoff, kind_of
from tessera.tiers.sites.entries import Outcome, SiteEntry, Values
from tessera.tiers.sites.first_program import first_program
from tessera.tiers.sites.programs import InstalledProgram
from tessera.tiers.sites.recording import Recording, SampledCall
from tessera.tiers.sites.request import Request
from tessera.tiers.sites.site import SiteRuntime
from tessera.tiers.sites.tier_policy import TierPolicy
from tessera.tiers.sites.timing import Reading, timer_for
from tessera.tiers.sites.trials import Candidates
from tessera.tiers.stand_ins import stand_in_call

TIER1, TIER2, TIER3 = ExecutionTier
FAULTS = (ResourceError, DeviceError, MemoryError, OverlapError)
"""Errors by which a program may fail before it has begun: another one, that needs less, may do."""
_MOST_BASES = 64  # programs without assumptions that a site keeps: one for each width, say
_MOST_RENEWED = 4  # entries that find their new program at once; others when they are called


class Callers(Protocol):
    """The calls of a client, as its sites see them."""

    @property
    def client(self) -> Client: ...

    def retry(self, values: Values, call: Call) -> Outcome:
        """Makes a call again that its entry could not make."""
        ...

    def forget_stale(self, gone: Sequence[SiteEntry], renewed: int = 0) -> None:
        """Drops entries that a site has given up, or replaces them with new ones."""
        ...


class SpecializationSite:
    """The programs for calls with the same kinds of arguments, static values and settings."""

    def __init__(self, runtime: SiteRuntime, tiered: Callers, call: Call) -> None:
        self.runtime = runtime
        self.tiered = tiered
        self.client = tiered.client
        self.name = self.client.name
        self.config = runtime.config
        self.counts = runtime.counts
        self.clock = runtime.clock
        self.lock = threading.RLock()
        self.programs: list[InstalledProgram] = []  # the most specialized first
        self.entries: list[SiteEntry] = []
        self.recording = Recording(self, self._noted)
        self.ring, self.hotness = self.recording.ring, self.recording.hotness
        backoff = Backoff(self.config.half_life)
        self.candidates = Candidates(self, self.recording, backoff)
        self.tier_policy = TierPolicy(self, self.recording, self.candidates, backoff)
        self.lookup_time = 0  # nanoseconds that the next call took to find its entry
        device = next((value.device for value in call.values if isinstance(value, Tensor)), None)
        self.device_kind = "cpu" if device is None else device.kind
        self.timer = timer_for(device, self.clock)
        self.numbers = tuple(index for index, value in enumerate(call.values) if not isinstance(value, Tensor))
        self.first = stand_in_call(call, call.values)
        self.unchanged = self.client.unchanged(call)
        self.can_tier_up = self.client.compiles(call)
        self.identity = self.client.identity(call) if self.config.persist and self.can_tier_up else None
        self._load(call)

    @property
    def is_working(self) -> bool:
        """Whether something is being compiled, waits for its calls, or is being compared."""
        awaited = any(entry.awaited for entry in self.entries)
        return bool(self.tier_policy.requests or self.candidates.ab_tests or awaited)

    def is_coming(self, entry: SiteEntry) -> bool:
        """Whether programs of Tier 3 are being compiled for such arguments."""
        return self.tier_policy.is_coming(entry)

    def _noted(self, entry: SiteEntry, test_round: Round | None, took: int) -> None:
        self.candidates.note(entry, test_round, took)

    # Finding programs

    def entry_for(self, call: Call, kept: Call | None = None) -> SiteEntry:
        """The entry for calls with such metas: a program whose guards hold, and behind it entries for other numbers.

        `kept` is the call without the user's arrays, where that is there already.
        """
        with self.lock:
            kept = stand_in_call(call, call.values) if kept is None else kept
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
            chain[0].rival = self.candidates.rival(kept.described)
            self.candidates.resume(chain[0])
            for entry in chain:
                self.candidates.expect(entry)
            self.entries += chain
            self.tier_policy.recall(chain[0])
            if (first := chain[0]).failed is not None:
                found = first.failed.found(call.values)
                self.counts.event_log.add("guard", self.name, f"{first.failed}, it is {found}")
                log("guards", f"{self.name}: {first.failed} does not hold, it is {found}; {first.program.level} runs")
            return first

    def runner(self, program: InstalledProgram, call: Call) -> Runner | None:
        """A program bound to a call's metas; None for one that fails to bind, which is not tried again."""
        try:
            return program.bind(call)
        except FAULTS as error:
            if program.tier is TIER1:
                raise
            self.fail(program, error)
            return None

    def _bound(self, program: InstalledProgram, call: Call, kept: Call) -> SiteEntry | None:
        run = self.runner(program, call)
        return None if run is None else SiteEntry(self, program, run, kept, self.config.half_life)

    def _base(self, call: Call) -> InstalledProgram:
        """Tier 1 for a call: from the disk, or compiled fast."""
        for program in self.programs:
            if program.tier is TIER1 and program.serves(call.values):
                return program
        compiled, level = first_program(self, call)
        bases = [program for program in self.programs if program.tier is TIER1]
        if len(bases) >= _MOST_BASES:
            self.drop(min(bases, key=lambda program: program.last_used))
        return self.install(InstalledProgram(self, level, compiled))

    def _load(self, call: Call) -> None:
        """Loads the programs that another process has left."""
        for level in [] if self.identity is None else self.runtime.manager.remembered(self.identity):
            try:
                found = self.client.find(call, level)
            except Exception as error:
                warn(f"{self.name}: a program of another process cannot be used: {summary_of(error)}")
                continue
            if found is not None:
                self.counts.add("loads", site=self.name, what=str(level))
                if level.tier is TIER3:
                    self.tier_policy.took(level)
                    self.tier_policy.backoff.note(kind_of(level), True, self.clock())
                self.install(InstalledProgram(self, level, found))
                log("tiers", f"{self.name}: starts at {level}, as another process left it")

    def install(self, program: InstalledProgram) -> InstalledProgram:
        """Adds a program to those that new entries choose from."""
        program.last_used = self.clock()
        self.programs.append(program)
        self.programs.sort(key=lambda one: (-one.tier, -len(one.compiled.guards)))
        if program.tier is not TIER1:
            self.runtime.manager.admit(program)
        return program

    def take(self, program: InstalledProgram, replaced: Sequence[InstalledProgram] = ()) -> None:
        """Puts a program to use, also for entries that had one of the replaced programs."""
        if program not in self.programs:
            self.install(program)
        if program.tier is TIER3:
            self.tier_policy.took(program.level)
        self._remember()
        served: list[SiteEntry] = []
        for entry in self.entries:
            broken = program.broken_guard(entry.call.values)
            if broken is None or any(map(entry.has, replaced)):
                served.append(entry)
            elif entry.failed is None and program.tier > entry.tier:
                self.recording.settle(entry)
                entry.failed = broken
        self._retire(served, renewed=_MOST_RENEWED)  # the other entries stay: to make them again takes a while

    # Running

    def sampled(self, entry: SiteEntry, values: Values, given: Values) -> Outcome:
        """Makes a call that is timed and recorded; returns its result and tier. `given` are a program's arguments.

        A GPU waits for the work before the launch, and runs during the work after it.
        """
        stats_recorder = self.runtime.stats_recorder
        came, self.lookup_time = self.clock() - self.lookup_time, 0
        test_round, stale = None, False
        if entry.ab_test is not None or entry.is_stale:
            # The stats recorder may hold the lock for long: then this call is like others.
            if not self._locked(stats_recorder.is_immediate):
                return self._unrecorded(entry, values, given)
            try:
                stale = entry.is_stale
                if entry.ab_test is not None and not stale:
                    test_round = self._next(entry.ab_test, values)
            finally:
                self.lock.release()
        if stale:
            self._count_before(entry)
            return self.tiered.retry(values, entry.call)
        contender = None if test_round is None else test_round.contender
        program = entry.program if contender is None else contender.program
        run = entry.run if contender is None else contender.run
        began = self.clock()
        try:
            result, took = self.timer.timed(run, given if program.compiled.is_native else values)
        except FAULTS as error:
            self._count_before(entry)
            return self.recover(entry, contender, error, values)
        # A GPU may be done before this is: the stats recorder does as much as possible.
        before = self._restart_countdown(entry)
        if before is None:
            return result, program.tier
        if took is None:
            stats_recorder.do(self._count, entry, before + 1)
            return result, program.tier
        numbers = [values[index] for index in self.numbers]
        stats_recorder.do(self._note, entry, program, test_round, before + 1, numbers, took, began - came)
        return result, program.tier

    def _next(self, ab_test: ABTest, values: Values) -> Round | None:
        """The next round; None where its contender was not compiled for these numbers. Metas are those of the entry."""
        test_round = ab_test.next()
        holds = None if test_round is None else test_round.contender.program.holds
        return test_round if holds is None or holds(*[values[index] for index in self.numbers]) else None

    def _count_before(self, entry: SiteEntry) -> None:
        """Counts the calls before one that another entry makes."""
        before = self._restart_countdown(entry)
        if before is not None:
            self.runtime.stats_recorder.do(self._count, entry, before)

    def _locked(self, blocking: bool) -> bool:
        """Takes the lock, where it is free or worth waiting for."""
        try:
            return self.lock.acquire(blocking)  # by name it takes longer
        except BaseException:  # a signal that came with the lock: nothing else would release it
            with suppress(RuntimeError):
                self.lock.release()
            raise

    def _restart_countdown(self, entry: SiteEntry) -> int | None:
        """Begins to count down to the next recorded call; returns how many there were since the last one.

        None where another thread has the lock: this call is not recorded after all, but perhaps the next.
        """
        if not self._locked(self.runtime.stats_recorder.is_immediate):
            entry.skip()
            return None
        try:
            return entry.restart(self.recording.period(entry))
        finally:
            self.lock.release()

    def given(self, values: Values) -> Values:
        """Arguments as compiled programs take them."""
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
        program: InstalledProgram,
        test_round: Round | None,
        calls: int,
        numbers: Sequence[Any],
        took: int | Reading,
        waited: int,
    ) -> None:
        """Processes a recorded call: a record, perhaps the end of an A/B test, perhaps a request."""
        began = self.clock()
        described = list(entry.described)
        for index, number in zip(self.numbers, numbers, strict=True):
            described[index] = number
        call = SampledCall(entry, program, test_round, calls, tuple(described))
        with self.lock:
            self.recording.ran(call, took)
            recorded = self.clock()
            self.tier_policy.consider(entry, call.described)
            self.candidates.begin(entry, call.described)
        self.runtime.manager.sweep()
        self.recording.overheads = recorded - began, waited + self.clock() - recorded
        if self.runtime.watch is not None:
            self.runtime.watch.recorded()

    def recover(self, entry: SiteEntry, contender: Contender | None, error: Exception, values: Values) -> Outcome:
        """Serves a call whose program could not begin by the next tier down."""
        program = entry.program if contender is None else contender.program
        if isinstance(error, OverlapError):
            # Its arrays overlap, other calls' may not: the kernel without tiers has a program for that.
            log("tiers", f"{self.name}: {error.message}: the program without tiers serves the call")
            return self.client.call_untiered(values, entry.call.context.static), TIER1
        if program.tier is TIER1 or not program.compiled.is_repeatable:
            raise error
        with self.lock:
            self.fail(program, error)
            if contender is not None:
                self.candidates.withdraw(entry, contender)
        return self.tiered.retry(values, entry.call)

    # Compiled programs

    def compiled(self, request: Request, found: Sequence[tuple[TierLevel, Compiled]]) -> None:
        """Takes in all programs of a request."""
        self.tier_policy.compiled(request, found)

    def arrived(self, request: Request, level: TierLevel, compiled: Compiled) -> None:
        """Takes in one program of a request as it comes."""
        self.tier_policy.arrived(request, level, compiled)

    def aborted(self, level: TierLevel, why: str) -> None:
        """Logs that a program could not be compiled: calls go on as they are."""
        self.counts.add("aborts", site=self.name, what=f"{level}: {why}")
        warn(f"{self.name}: {level} is given up: {why}")

    # Dropping programs

    def drop(self, program: InstalledProgram) -> None:
        """Takes a program out of use; calls that had it find another."""
        with self.lock:
            self.candidates.remove(program)
            if program in self.programs:
                self.remove(program)
                self.forget(program)

    def remove(self, program: InstalledProgram) -> None:
        """Removes a program from those that new entries choose from; entries that have it keep it."""
        self.programs.remove(program)
        self.runtime.manager.released(program)
        if program.tier is TIER3:
            self.tier_policy.dropped()

    def let_go(self, program: InstalledProgram) -> None:
        """Drops a program on purpose: it is not loaded again until one like it is in use."""
        with self.lock:
            self.tier_policy.forget_taken()
            self.drop(program)

    def fail(self, program: InstalledProgram, error: Exception) -> None:
        """Takes a program out of use that could not begin."""
        with self.lock:
            self.aborted(program.level, summary_of(error))
            self.drop(program)

    def forked(self) -> None:
        """In the child of a fork: the thread that held the lock is not there, and requests get no answer."""
        self.lock = threading.RLock()
        self.tier_policy.requests = []

    def close(self) -> None:
        """Lets go of all programs when the site is not called any more."""
        with self.lock:
            self.can_tier_up, self.tier_policy.requests = False, []
            self.candidates.clear()
            for program in self.programs:
                self.runtime.manager.released(program)
            self.programs = []
            self.forget()

    def forget(self, program: InstalledProgram | None = None) -> None:
        """Lets calls look for their programs anew: those that had a certain one, or all."""
        with self.lock:
            if program is None:
                for one in self.programs:
                    one.let_go()
            self._retire([entry for entry in self.entries if program is None or entry.has(program)])

    def _retire(self, gone: Sequence[SiteEntry], renewed: int = 0) -> None:
        for entry in gone:
            self.recording.settle(entry)
            entry.is_stale = True
        self.entries = [entry for entry in self.entries if not entry.is_stale]
        self.tiered.forget_stale(gone, renewed)

    def collect(self) -> None:
        """Records the calls that a GPU has finished by now."""
        with self.lock:
            self.recording.collect()

    def unrecorded(self, tier: ExecutionTier) -> int:
        """Calls at a tier since the last recorded ones: those that are not counted yet."""
        with self.lock:
            return self.recording.unrecorded(tier)

    def explain(self) -> Iterator[str]:
        """Lines about the site and its programs."""
        hot = self.hotness.at(self.clock()) / 1e6
        calls = self.recording.calls + sum(map(self.unrecorded, ExecutionTier))
        yield f"{self.name}: {calls} calls, {hot:.1f} ms lately"
        for program in self.programs:
            guards = program.guards_shown()
            average = f", {program.spent / program.uses / 1e3:.1f} µs a call" if program.uses else ""
            bridge = ", a bridge" if program.is_bridge else ""
            yield f"  {program.level}{bridge}: {program.uses} calls{average}; guarded by {guards}"

    def _remember(self) -> None:
        """Stores the levels in use for the next process."""
        if self.identity is not None:
            self.runtime.manager.remember(self.identity, [one.level for one in self.programs if one.tier > TIER1])
