"""Programs on trial: new ones wait for calls that they serve, compete there, and the fastest is taken."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from tessera.runtime.tensor.meta import Meta
from tessera.tiers.logs import log
from tessera.tiers.records import Described, ExecutionTier
from tessera.tiers.sites.ab_test import Contender, Contest, Turn
from tessera.tiers.sites.backoff import Lessons
from tessera.tiers.sites.candidates import general_beside, numbers_in
from tessera.tiers.sites.entries import SiteEntry
from tessera.tiers.sites.programs import Installed
from tessera.tiers.sites.recording import Recording
from tessera.tiers.sites.site import TieredSite
from tessera.tiers.stand_ins import values_of
from tessera.tile.language.schedule import Schedule

TIER3 = ExecutionTier.TIER3_SPECIALIZED
_SLOWER = 1.1  # times what another program took: then that one gets another chance
_MOST_WAITING = 8
_MOST_REMEMBERED = 256
_PATIENCE = 200  # recorded calls after which a contest is decided by what is known: its arguments may never come again


class Newcomers:
    """The trials of a region. Whoever changes them holds the region's lock."""

    def __init__(self, region: TieredSite, recording: Recording, lessons: Lessons) -> None:
        self.region, self.recording, self.lessons = region, recording, lessons
        self.waiting: list[Installed] = []  # for calls that they serve
        self.contests: list[tuple[SiteEntry, Contest, int]] = []  # with the number of the record that each began at
        self.times: dict[Schedule | None, float] = {}  # of schedules, when they were last compared
        self.rivals: dict[tuple[object, ...], tuple[Installed, float]] = {}

    @property
    def programs(self) -> list[Installed]:
        """All that wait or compete."""
        return [*self.waiting, *(one.program for _, contest, _ in self.contests for one in contest.contenders)]

    def add(self, programs: Sequence[Installed]) -> None:
        """Has the next calls compare new programs with what they run now."""
        self.waiting += programs
        del self.waiting[:-_MOST_WAITING]
        for entry in self.region.entries:
            self.expect(entry)
            if entry.awaited:
                entry.hurry()

    def remove(self, program: Installed) -> None:
        """Does not try a program after all."""
        if program in self.waiting:
            self.waiting.remove(program)
            self._expect_all()

    def clear(self) -> None:
        self.waiting = []
        self._expect_all()

    def expect(self, entry: SiteEntry) -> None:
        """Notes whether a program waits for calls of an entry; numbers are looked at when such a call has come."""
        waiting = (program for program in self.waiting if self._may_replace(program, entry))
        entry.awaited = any(program.broken_guard(entry.call.values) is None for program in waiting)

    def _expect_all(self) -> None:
        for entry in self.region.entries:
            self.expect(entry)

    def resume(self, entry: SiteEntry) -> None:
        """Goes on with a contest whose entry was given up, where this one takes its place.

        Where it runs something else by now, whoever competed there waits for it.
        """
        for place, (old, contest, since) in enumerate(self.contests):
            if old.is_stale and old.contest is contest and old.described == entry.described:
                old.contest = None
                if contest.incumbent.program is entry.program:
                    entry.contest = contest
                    self.contests[place] = entry, contest, since
                else:
                    del self.contests[place]
                    self.waiting += [one.program for one in contest.alive if one.program not in self.region.programs]
                return

    def rival(self, described: Described) -> tuple[Installed, float] | None:
        """The program that lost to the one in use for such arguments, and what it took."""
        return self.rivals.get(geometry(described))

    def begin(self, entry: SiteEntry, described: Described) -> None:
        """Lets programs that wait for calls of an entry compete there, with what they are to replace.

        That does not compete where it was made to be there soon, not to be fast.
        """
        if not entry.awaited or entry.contest is not None or entry.is_stale:
            return
        values = values_of(entry.call, described)
        serving = [one for one in self.waiting if self._may_replace(one, entry) and one.serves(values)]
        if any(one.tier is TIER3 for one in serving):  # others come after these, if these lose
            serving = [one for one in serving if one.tier is TIER3 or one.level.schedule is None]
        if not serving:
            return
        call = entry.call._replace(values=values)
        contenders: list[Contender] = []
        if not entry.program.level.quick:
            contenders.append(Contender(entry.program, entry.run))
        for program in serving:
            run = self.region.runner(program, call)
            if run is not None:
                contenders.append(Contender(program, run))
        self.waiting = [program for program in self.waiting if program not in serving]
        self._expect_all()
        before = median(entry.recent) if entry.recent else None
        if len(contenders) > 1:
            self._compete(entry, Contest(contenders, self.region.config.contest_rounds, before))
        elif contenders and contenders[0].program is not entry.program:
            self.region.take(contenders[0].program)

    def _compete(self, entry: SiteEntry, contest: Contest) -> None:
        self.region.counts.add("contests", region=self.region.name)
        entry.contest = contest
        self.contests.append((entry, contest, self.recording.recorded))

    def note(self, entry: SiteEntry, turn: Turn | None, took: int) -> None:
        """A call was recorded: it may decide a contest, or show that one takes too long."""
        contest = entry.contest
        if contest is not None and turn is not None:
            contest.note(turn, took)
            if contest.is_over:
                self._end(entry, contest)
        if self.contests and self.recording.recorded - self.contests[0][2] > _PATIENCE:
            self._end(*self.contests[0][:2])

    def withdraw(self, entry: SiteEntry, contender: Contender) -> None:
        """A program failed that competes: the others go on, if there are any."""
        contest = entry.contest
        if contest is not None:
            contest.withdraw(contender)
            if contest.is_over:
                self._end(entry, contest)

    def _end(self, entry: SiteEntry, contest: Contest) -> None:
        region = self.region
        entry.contest = None
        self.contests = [one for one in self.contests if one[1] is not contest]
        best, incumbent = contest.winner(), contest.incumbent
        if best is None:
            return
        times = contest.times(best)
        for one, typical in times.items():
            took = "never ran" if typical is None else f"{typical / 1e3:.1f} µs"
            log("tiers", f"{region.name}: {one.program.level}: {took}{', taken' if one is best else ''}")
        self.times.update((one.program.level.schedule, took) for one, took in times.items() if took is not None)
        won, lost = times[best], times[incumbent]
        is_old = incumbent.program in region.programs
        if best is not incumbent and is_old and lost is not None:
            self.rivals[geometry(entry.described)] = (incumbent.program, lost)
            if len(self.rivals) > _MOST_REMEMBERED:
                del self.rivals[next(iter(self.rivals))]
        before = lost if is_old else contest.before
        if best.program not in region.programs and won is not None and before is not None:
            best.program.gain = max(0.0, before - won)
        # What serves calls that the winner refuses is the last program of the tier below.
        rival = self.rival(entry.described)
        below = rival[1] if incumbent.program.tier is TIER3 and rival is not None else lost
        self.lessons.learn(best, times, region.clock())
        region.runtime.learn(region, entry, max(one.program.tier for one in contest.contenders), times, before, won)
        general = general_beside(region.client, best, times, below)
        losers = [one.program for one in contest.contenders if one not in (best, general)]
        if any(best.program.tier < one.tier for one in losers):
            region.counts.add("switch_backs", region=region.name, what=str(best.program.level))
            log("tiers", f"{region.name}: more facts were not faster, it stays at {best.program.level}")
        replaced = [one for one in losers if one in region.programs and best.program.replaces(one)]
        for program in replaced:
            region.remove(program)
        if general is not None and general.program not in region.programs:
            region.install(general.program)  # for entries to come: those that are there soon have a bridge
        region.take(best.program, replaced)

    def look_back(self, entry: SiteEntry, values: tuple[Any, ...]) -> bool:
        """Gives the program before another chance, where this one has become slower than that one was."""
        region = self.region
        if entry.rival is None or len(entry.recent) < (entry.recent.maxlen or 0):
            return False
        before, took = entry.rival
        if min(entry.recent) <= _SLOWER * took or before not in region.programs or not before.serves(values):
            return False
        entry.rival = None
        self.rivals.pop(geometry(entry.described), None)
        run = region.runner(before, entry.call._replace(values=values))
        if run is None:
            return False
        log("tiers", f"{region.name}: {entry.program.level} has become slow, compared again with {before.level}")
        contenders = [Contender(entry.program, entry.run), Contender(before, run)]
        self._compete(entry, Contest(contenders, region.config.contest_rounds, None))
        entry.hurry()
        return True

    def _may_replace(self, program: Installed, entry: SiteEntry) -> bool:
        """Whether there is a point in comparing: of those that know less only what runs without traces has a claim.

        Others of them wait for arguments of which no program knows the sizes, nor will soon; and what was generalised
        for those that the program in use refuses.
        """
        assumed = entry.program.level.assumed
        if program.tier is TIER3 and program.is_bridge and set(program.level.assumed) < set(assumed):
            return False
        if program.tier is TIER3 or program.level.schedule is None:
            return True
        return numbers_in(self.region.client, assumed) == assumed and not self.region.is_coming(entry)


def geometry(described: Described) -> tuple[object, ...]:
    """What tells arguments apart for programs: how well arrays are aligned does not."""
    return tuple([(one.shape, one.strides) if isinstance(one, Meta) else one for one in described])
