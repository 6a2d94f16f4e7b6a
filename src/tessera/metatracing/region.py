"""A region: one client with arguments of the same kinds, its programs at all tiers, and when it climbs and falls.

All tiers are one pipeline with more facts. A call takes the program that knows most and whose guards hold; guards are
asked before anything runs, so what a refused call runs instead finds its outputs untouched.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any

from tessera.errors import DeviceError, ResourceError, TesseraError
from tessera.kernels.schedule import Schedule
from tessera.metatracing.candidates import bridge_levels, general_beside, tier2_levels, tier3_levels
from tessera.metatracing.client import Call, Compiled, Level, RuntimeGuard
from tessera.metatracing.contest import Contender, Contest
from tessera.metatracing.first_program import first_program
from tessera.metatracing.heat import Heat
from tessera.metatracing.invariants import few_cases, invariant_words
from tessera.metatracing.logs import complain, log, told
from tessera.metatracing.programs import Entry, Installed, numbers_hold
from tessera.metatracing.records import Described, ExecutionTier, LaunchFacts, Record, Ring
from tessera.metatracing.request import Request
from tessera.metatracing.stand_ins import standing_in
from tessera.metatracing.timing import Reading, timer_for
from tessera.runtime.meta import Meta
from tessera.runtime.tensor import Tensor

if TYPE_CHECKING:
    from tessera.metatracing.runtime import MetaTracingRuntime
    from tessera.metatracing.tiered import Tiered

TIER1, TIER2, TIER3 = ExecutionTier
FAULTS = (ResourceError, DeviceError, MemoryError)
"""What a program may fail with before it has begun: another one, that needs less, may do."""
_PERIODS = ((20_000, 255), (100_000, 63), (1_000_000, 15), (10_000_000, 7))
"""Calls between two that are recorded, by the nanoseconds below which they take."""
_WARM = 8  # calls of an entry that are all recorded
_SLOWER = 1.1  # times what another program took: then that one gets another chance
_MOST_BASES = 64  # programs without assumptions that a region keeps: one for each width, say
_MOST_REMEMBERED = 256
_MOST_PENDING = 64
_PATIENCE = 200  # recorded calls after which a contest is decided by what is known: its arguments may never come again


class Region:
    """The programs for calls that agree in all that facts do not speak of."""

    def __init__(self, runtime: MetaTracingRuntime, tiered: Tiered, call: Call) -> None:
        self.runtime = runtime
        self.tiered = tiered
        self.client = tiered.client
        self.name = self.client.name
        self.config = runtime.config
        self.counts = runtime.counts
        self.clock = runtime.clock
        self.lock = threading.RLock()
        self.programs: list[Installed] = []  # those that know most first
        self.trials: list[Installed] = []
        self.entries: list[Entry] = []
        self.heat = Heat(self.config.half_life)
        self.ring = Ring(self.config.max_trace_history)
        self.request: Request | None = None  # the one that is being compiled
        self.recorded = 0
        self.words: tuple[str, ...] | None = None  # what Tier 3 assumes
        self.bridges = 0
        self.generalised: set[tuple[str, ...]] = set()
        self.asked: dict[tuple[object, ...], set[ExecutionTier]] = {}
        self.times: dict[Schedule | None, float] = {}  # of schedules, when they were last compared
        self.rivals: dict[tuple[object, ...], tuple[Installed, float]] = {}
        self.pending: deque[tuple[Entry, Installed, Contender | None, Reading, int, Described]] = deque()
        self.contests: list[tuple[Entry, Contest, int]] = []  # with the number of the record that each began at
        self.calls = 0
        self.looking = 0  # nanoseconds that the call which is coming took to find its entry
        self.overheads = 0, 0  # of the last recorded call: recording it, and deciding what to run and to compile
        place = next((value.device for value in call.values if isinstance(value, Tensor)), None)
        self.device_kind = "cpu" if place is None else place.kind
        self.timer = timer_for(place, self.clock)
        self.numbers = tuple(place for place, value in enumerate(call.values) if not isinstance(value, Tensor))
        self.first = standing_in(call, call.values)
        self.unchanged = self.client.unchanged(call)
        self.climbs = self.client.compiles(call)
        self.identity = self.client.identity(call) if self.config.persist and self.climbs else None
        self._load(call)

    # Finding programs

    def entry_for(self, call: Call) -> Entry:
        """The entry for calls with such metas: a program whose guards hold, and behind it what serves other numbers."""
        with self.lock:
            kept = standing_in(call, call.values)
            chain: list[Entry] = []
            failed: RuntimeGuard | None = None
            for program in list(self.programs):
                broken = program.broken_guard(call.values, numbers=False)
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
            chain[0].rival = self.rivals.get(_geometry(kept.described))
            self.entries += chain
            if (first := chain[0]).failed is not None:
                found = first.failed.found(call.values)
                self.counts.journal.add("guard", self.name, f"{first.failed}, it is {found}")
                log("guards", f"{self.name}: {first.failed} does not hold, it is {found}; {first.program.level} runs")
            return first

    def _bound(self, program: Installed, call: Call, kept: Call) -> Entry | None:
        """A program bound to a call's metas; None for one that fails at that, which is not tried again."""
        try:
            run = program.compiled.bind(call)
        except FAULTS as error:
            if program.tier is TIER1:
                raise
            self.fail(program, error)
            return None
        entry = Entry(self, program, run, kept, self.config.half_life)
        entry.holds = numbers_hold(program.compiled.guards, self.numbers)
        return entry

    def _base(self, call: Call) -> Installed:
        """Tier 1 for a call: from the disk, or compiled so that there is a result soon."""
        for program in self.programs:
            if program.tier is TIER1 and program.serves(call.values):
                return program
        compiled, level = first_program(self, call)
        bases = [program for program in self.programs if program.tier is TIER1]
        if len(bases) >= _MOST_BASES:
            self.drop(min(bases, key=lambda program: program.last_used))
        return self._install(Installed(self, level, compiled))

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
                    self.words = level.assumed
                self._install(Installed(self, level, found))
                log("tiers", f"{self.name}: starts at {level}, as another process left it")

    def _install(self, program: Installed) -> Installed:
        program.last_used = self.clock()
        self.programs.append(program)
        self.programs.sort(key=lambda one: (-one.tier, -len(one.compiled.guards)))
        if program.tier is not TIER1:
            self.runtime.manager.admit(program)
        return program

    # Running

    def sampled(self, entry: Entry, values: tuple[Any, ...]) -> tuple[Any, int]:
        """A call that is timed and recorded; its result, and the tier that it ran at."""
        came, self.looking = self.clock() - self.looking, 0
        with self.lock:
            before = self._settle(entry)
            if self.trials and entry.contest is None:
                self._begin_contest(entry, values)
                if entry.is_stale:
                    return self.tiered.again(values, entry.call)
            contender = None
            if entry.contest is not None:
                contender = entry.contest.next()
                if not contender.program.serves(values):  # numbers that this one was not made for
                    contender = None
            program = entry.program if contender is None else contender.program
            run = entry.run if contender is None else contender.run
        began = self.clock()
        flat = [value.geometry if isinstance(value, Tensor) else value for value in values]
        try:
            result, took = self.timer.timed(
                run, flat if program.compiled.is_native and not self.client.takes_tensors else values
            )
        except FAULTS as error:
            return self.recover(entry, contender, error, values)
        ended = self.clock()
        described = tuple([value.meta if isinstance(value, Tensor) else value for value in values])
        with self.lock:
            count = before + 1
            entry.restart(self._period(entry))
            self._count(program, entry, 1)
            if isinstance(took, int):
                self._record(entry, program, contender, took, count, described)
            else:
                if len(self.pending) >= _MOST_PENDING:
                    self.pending.popleft()
                self.pending.append((entry, program, contender, took, count, described))
                self._collect()
            recorded = self.clock()
            self._consider(entry, described, values)
        self.runtime.manager.sweep()
        self.overheads = recorded - ended, began - came + self.clock() - recorded
        if self.runtime.watch is not None:
            self.runtime.watch.recorded()
        return result, program.tier

    def _collect(self) -> None:
        """Takes in what a GPU has done by now."""
        while self.pending:
            entry, program, contender, reading, count, described = self.pending[0]
            took = reading()
            if took is None:
                return
            self.pending.popleft()
            self._record(entry, program, contender, took, count, described)

    def _settle(self, entry: Entry) -> int:
        """Counts the calls of an entry since its last recorded one."""
        count = entry.settle()
        if count:
            self._count(entry.program, entry, count)
        return count

    def _count(self, program: Installed, entry: Entry, count: int) -> None:
        self.calls += count
        self.counts.ran(program.tier, entry.failed, count)

    def _record(
        self, entry: Entry, program: Installed, contender: Contender | None, took: int, count: int, described: Described
    ) -> None:
        now = self.clock()
        program.note(now, took, count)
        self.counts.took(program.tier, took, count)
        self.heat.add(now, took * count)
        entry.heat.add(now, took * count)
        entry.recent.append(took)
        if self.config.enable_tracing:
            if entry.facts is None:
                entry.facts = self._launch_facts(entry)
            self.counts.add("traces")
            self.ring.add(Record(now, program.tier, described, took, count, entry.facts, *self.overheads))
        self.recorded += 1
        contest = entry.contest
        if contest is not None and contender is not None:
            contest.note(contender, took)
            if contest.is_over:
                self._end_contest(entry, contest)
        if self.contests and self.recorded - self.contests[0][2] > _PATIENCE:
            self._end_contest(*self.contests[0][:2])

    def _launch_facts(self, entry: Entry) -> LaunchFacts:
        try:
            return entry.program.compiled.launch_facts(entry.call)
        except TesseraError:
            return LaunchFacts()

    def _period(self, entry: Entry) -> int:
        """How many calls to let pass unrecorded: so many that recording takes a small part of the time."""
        if entry.contest is not None or self.trials or not entry.is_native:
            return 0
        if self.config.sample_period is not None:
            return self.config.sample_period
        if entry.seen < _WARM:
            entry.seen += 1
            return 0
        typical = median(entry.recent) if entry.recent else 0
        return next((period for below, period in _PERIODS if typical < below), 1)

    def recover(
        self, entry: Entry, contender: Contender | None, error: Exception, values: tuple[Any, ...]
    ) -> tuple[Any, int]:
        """A call whose program could not begin: the next tier down serves it."""
        program = entry.program if contender is None else contender.program
        if program.tier is TIER1 or not program.compiled.is_repeatable:
            raise error
        with self.lock:
            if entry.contest is not None and contender is not None:
                entry.contest.withdraw(contender)
            self.fail(program, error)
        return self.tiered.again(values, entry.call)

    # Climbing

    def _consider(self, entry: Entry, described: Described, values: tuple[Any, ...]) -> None:
        """Whether to compile something more for calls like this."""
        busy = self.request is not None or self.trials or entry.contest is not None
        if not self.climbs or entry.is_stale or busy:
            return
        if self._look_back(entry, values):
            return
        config, now, tier = self.config, self.clock(), entry.tier
        asked = self.asked.setdefault(self._case(described), set())
        if len(self.asked) > _MOST_REMEMBERED:
            del self.asked[next(iter(self.asked))]
        for wanted, threshold, enabled in (
            (TIER2, config.tier2_threshold, config.enable_tier2_compilation),
            (TIER3, config.tier3_threshold, config.enable_tier3_specialization),
        ):
            # Where a program of the highest tier refused a call, one for it may be better than a general one.
            climbs = tier < wanted or (wanted is TIER3 and entry.failed is not None)
            first = all(program.tier < wanted for program in self.programs)
            heat = self.heat.at(now) if first else entry.heat.at(now)
            if enabled and climbs and wanted not in asked and heat >= threshold:
                if not first and entry.calls < config.bridge_calls:
                    return
                asked.add(wanted)
                climbing = self._climb(entry, described, wanted, is_bridge=not first)
                # By now numbers may count that did not before.
                self.asked.setdefault(self._case(described), asked).add(wanted)
                if climbing:
                    return

    def _case(self, described: Described) -> tuple[object, ...]:
        """What requests are remembered by: numbers only count where they are assumed."""
        assumed = self.words or ()
        return tuple(
            [
                one if place not in self.numbers or self.client.paths[place] in assumed else None
                for place, one in enumerate(_geometry(described))
            ]
        )

    def _climb(self, entry: Entry, described: Described, tier: ExecutionTier, *, is_bridge: bool) -> bool:
        """Asks for programs of a tier; False where there is nothing to ask for."""
        call = entry.call._replace(values=self._values(entry.call, described))
        current, most, seen = entry.program.level.schedule, self.config.candidates, self.runtime.experience
        levels: Sequence[Level] | Callable[[], Sequence[Level]]
        if tier is TIER2 and is_bridge:
            levels = bridge_levels(TIER2, (), current)
        elif tier is TIER2:
            later = partial(tier2_levels, self.client, call, most, seen)
            levels = later() if self.client.knows_schedules(call) else later
        elif words := self._words(entry, described, is_bridge):
            regular = tier3_levels(self.client, call, words, current, self.times, most, seen)
            levels = bridge_levels(TIER3, words, current) if is_bridge else regular
        else:
            return False
        if pays := self.runtime.climb_pays(self, entry, tier, most if callable(levels) else len(levels)):
            self._ask(Request(self, call, tier, levels, is_bridge=is_bridge))
        return pays

    def _values(self, call: Call, described: Described) -> tuple[Any, ...]:
        """The arguments of a call that is kept, with the numbers of this one."""
        return tuple(
            [kept if isinstance(kept, Tensor) else one for kept, one in zip(call.values, described, strict=True)]
        )

    def _words(self, entry: Entry, described: Described, is_bridge: bool) -> tuple[str, ...]:
        """What to assume: all where few cases are known, else what is invariant; less after too many bridges."""
        paths, share = self.client.paths, self.config.invariance
        if not is_bridge or self.words is None:
            few = few_cases(self.ring, self.config.most_bridges + 1, share)
            self.words = invariant_words(paths, () if few else self.ring, described, share)
            return self.words
        if self.bridges < self.config.most_bridges:
            return self.words
        refused = {
            guard.word
            for program in self.programs
            if program.tier is TIER3
            for guard in program.compiled.guards
            if not guard.check_function(self._values(entry.call, described))
        }
        kept = set(self.words) - refused
        # What varies with what was refused would be refused next: the strides of a longer row, say.
        kept &= set(invariant_words(paths, self.ring, described, share))
        words = tuple(sorted(kept))
        if not words or words in self.generalised:
            return ()
        self.generalised.add(words)
        self.counts.add("generalisations", region=self.name)
        log("tiers", f"{self.name}: generalised, it now assumes {', '.join(words)}")
        return words

    def _ask(self, request: Request) -> None:
        self.request = request
        if request.is_bridge and self.bridges < self.config.most_bridges:
            self.bridges += 1
            self.counts.add("bridges", region=self.name)
        self.runtime.compile(request)

    def compiled(self, request: Request, found: Sequence[tuple[Level, Compiled]]) -> None:
        """Takes in what was compiled; the next calls compare it with what they run now."""
        with self.lock:
            if self.request is not request:  # the region was forgotten meanwhile
                return
            self.request = None
            request.done()
            self.counts.add("compiles", len(found), region=self.name)
            # What came first has competed already: it is in use, still competes, or gets another chance.
            there = [program.compiled for program in (*self.programs, *self.trials)]
            there += [one.program.compiled for _, contest, _ in self.contests for one in contest.contenders]
            self._try([(level, one) for level, one in found if one not in there], is_bridge=request.is_bridge)

    def arrived(self, request: Request, level: Level, compiled: Compiled) -> None:
        """One of several programs is there: the first of them does not wait for the others.

        It takes over at once from what was only made to be there soon, and else competes.
        """
        with self.lock:
            if self.request is not request or request.taken is not None:
                return
            request.taken = compiled
            if any(entry.program.level.quick for entry in self.entries):
                self._take(Installed(self, level, compiled, is_bridge=request.is_bridge))
            elif len(request.levels) > 1:
                self._try([(level, compiled)], is_bridge=request.is_bridge)

    def _try(self, found: Sequence[tuple[Level, Compiled]], *, is_bridge: bool) -> None:
        """Has the next calls compare new programs with what they run now."""
        self.trials += [Installed(self, level, program, is_bridge=is_bridge) for level, program in found]
        for entry in self.entries:
            entry.hurry()

    def aborted(self, level: Level, why: str) -> None:
        """Something could not be compiled: calls go on as they are."""
        self.counts.add("aborts", region=self.name, what=f"{level}: {why}")
        complain(f"{self.name}: {level} is given up: {why}")

    def _begin_contest(self, entry: Entry, values: tuple[Any, ...]) -> None:
        """Lets new programs compete on the calls of an entry, with what they are to replace.

        That does not compete where it was made to be there soon, not to be fast.
        """
        serving = [program for program in self.trials if program.serves(values)]
        if not serving:
            return
        call = entry.call._replace(values=values)
        contenders: list[Contender] = []
        if not entry.program.level.quick:
            contenders.append(Contender(entry.program, entry.run))
        for program in serving:
            made = self._bound(program, call, entry.call)
            if made is not None:
                contenders.append(Contender(program, made.run))
        self.trials = [program for program in self.trials if program not in serving]
        before = median(entry.recent) if entry.recent else None
        if len(contenders) > 1:
            self._compete(entry, Contest(contenders, self.config.contest_rounds, before))
        elif contenders and contenders[0].program is not entry.program:
            self._take(contenders[0].program)

    def _compete(self, entry: Entry, contest: Contest) -> None:
        self.counts.add("contests", region=self.name)
        entry.contest = contest
        self.contests.append((entry, contest, self.recorded))

    def _take(self, program: Installed) -> None:
        """Puts a program to use."""
        if program not in self.programs:
            self._install(program)
        if program.tier is TIER3:
            self.words = program.level.assumed
        self._remember()
        served: list[Entry] = []
        for entry in self.entries:
            broken = program.broken_guard(entry.call.values, numbers=False)
            if broken is None:
                served.append(entry)
            elif entry.failed is None and program.tier > entry.tier:
                self._settle(entry)
                entry.failed = broken
        self._leave(served)  # others have what they had: looking for it takes a while

    def _end_contest(self, entry: Entry, contest: Contest) -> None:
        entry.contest = None
        self.contests = [one for one in self.contests if one[1] is not contest]
        best, incumbent = contest.winner(), contest.incumbent
        times = {one: contest.typical(one) for one in contest.contenders}
        for one, typical in times.items():
            took = "never ran" if typical is None else f"{typical / 1e3:.1f} µs"
            log("tiers", f"{self.name}: {one.program.level}: {took}{', taken' if one is best else ''}")
        self.times.update((one.program.level.schedule, took) for one, took in times.items() if took is not None)
        won, lost = times[best], times[incumbent]
        is_old = incumbent.program in self.programs
        if best is not incumbent and is_old and lost is not None:
            self.rivals[_geometry(entry.described)] = (incumbent.program, lost)
            if len(self.rivals) > _MOST_REMEMBERED:
                del self.rivals[next(iter(self.rivals))]
        before = lost if is_old else contest.before
        if best.program not in self.programs and won is not None and before is not None:
            best.program.gain = max(0.0, before - won)
        # What serves calls that the winner refuses is the last program of the tier below.
        rival = self.rivals.get(_geometry(entry.described))
        below = rival[1] if incumbent.program.tier is TIER3 and rival is not None else lost
        self.runtime.learn(self, entry, max(one.program.tier for one in contest.contenders), times, before, won)
        general = general_beside(self.client, best, times, below)
        losers = [one.program for one in contest.contenders if one not in (best, general)]
        if any(best.program.tier < one.tier for one in losers):
            self.counts.add("switch_backs", region=self.name, what=str(best.program.level))
            log("tiers", f"{self.name}: more facts were not faster, it stays at {best.program.level}")
        for program in losers:
            if program is not incumbent.program or best.program.replaces(program):
                self.drop(program)
        if general is not None and general.program not in self.programs:
            self._install(general.program)
        self._take(best.program)

    def _look_back(self, entry: Entry, values: tuple[Any, ...]) -> bool:
        """Gives the program before another chance, where this one has become slower than that one was."""
        if entry.rival is None or len(entry.recent) < (entry.recent.maxlen or 0):
            return False
        before, took = entry.rival
        if min(entry.recent) <= _SLOWER * took or before not in self.programs or not before.serves(values):
            return False
        entry.rival = None
        self.rivals.pop(_geometry(entry.described), None)
        made = self._bound(before, entry.call._replace(values=values), entry.call)
        if made is None:
            return False
        log("tiers", f"{self.name}: {entry.program.level} has become slow, compared again with {before.level}")
        contenders = [Contender(entry.program, entry.run), Contender(before, made.run)]
        self._compete(entry, Contest(contenders, self.config.contest_rounds, None))
        entry.hurry()
        return True

    # Falling

    def drop(self, program: Installed) -> None:
        """Takes a program out of use; calls that had it find another."""
        with self.lock:
            self.trials = [one for one in self.trials if one is not program]
            if program in self.programs:
                self.programs.remove(program)
                self.runtime.manager.released(program)
                self.forget(program)

    def fail(self, program: Installed, error: Exception) -> None:
        """Takes a program out of use that could not begin."""
        with self.lock:
            self.aborted(program.level, told(error))
            self.drop(program)

    def forked(self) -> None:
        """In the child of a fork: whoever held the lock is not there, and nobody answers what was asked."""
        self.lock = threading.RLock()
        self.request = None

    def close(self) -> None:
        """Lets go of all programs: nobody calls this region any more."""
        with self.lock:
            self.climbs, self.request = False, None
            self.trials = []
            for program in self.programs:
                self.runtime.manager.released(program)
            self.programs = []
            self.forget()

    def forget(self, program: Installed | None = None) -> None:
        """Lets calls look for their programs anew: those that had a certain one, or all."""
        with self.lock:
            self._leave([entry for entry in self.entries if program is None or entry.has(program)])

    def _leave(self, gone: Sequence[Entry]) -> None:
        for entry in gone:
            self._settle(entry)
            entry.is_stale = True
        self.entries = [entry for entry in self.entries if not entry.is_stale]
        self.tiered.forget_stale()

    def unrecorded(self, tier: ExecutionTier) -> int:
        """Calls at a tier since the last recorded ones: those that nobody has counted yet."""
        with self.lock:
            return sum(entry.unrecorded for entry in self.entries if entry.tier is tier)

    def told(self) -> Iterator[str]:
        """The region in words."""
        hot = self.heat.at(self.clock()) / 1e6
        calls = self.calls + sum(map(self.unrecorded, ExecutionTier))
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


def _geometry(described: Described) -> tuple[object, ...]:
    """What tells arguments apart for programs: how well arrays are aligned does not."""
    return tuple([(one.shape, one.strides) if isinstance(one, Meta) else one for one in described])
