"""Trials of candidates: new programs wait for calls that they serve, A/B tests compare them, the fastest is taken."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from tessera.runtime.tensor.meta import Meta
from tessera.tiers.logs import log
from tessera.tiers.records import Described, ExecutionTier
from tessera.tiers.sites.ab_test import ABTest, Contender, Round
from tessera.tiers.sites.backoff import Backoff
from tessera.tiers.sites.candidates import general_fallback, numbers_in
from tessera.tiers.sites.entries import SiteEntry
from tessera.tiers.sites.programs import InstalledProgram
from tessera.tiers.sites.recording import Recording
from tessera.tiers.sites.site import TieredSite
from tessera.tiers.stand_ins import values_of
from tessera.tile.language.schedule import Schedule

TIER3 = ExecutionTier.TIER3_SPECIALIZED
_SLOWER = 1.1  # times another program's duration: then that one gets another chance
_MOST_WAITING = 8
_MOST_REMEMBERED = 256
_PATIENCE = 200  # recorded calls after which a test is decided: its arguments may never come again


class Candidates:
    """The candidates of a site and their A/B tests. Changes need the site's lock."""

    def __init__(self, site: TieredSite, recording: Recording, backoff: Backoff) -> None:
        self.site, self.recording, self.backoff = site, recording, backoff
        self.waiting: list[InstalledProgram] = []  # for calls that they serve
        self.ab_tests: list[tuple[SiteEntry, ABTest, int]] = []  # with the number of the record that each began at
        self.times: dict[Schedule | None, float] = {}  # of schedules, when they were last compared
        self.rivals: dict[tuple[object, ...], tuple[InstalledProgram, float]] = {}

    @property
    def programs(self) -> list[InstalledProgram]:
        """All that wait or are tested."""
        return [*self.waiting, *(one.program for _, ab_test, _ in self.ab_tests for one in ab_test.contenders)]

    def add(self, programs: Sequence[InstalledProgram]) -> None:
        """Has the next calls compare new programs with what they run now."""
        self.waiting += programs
        del self.waiting[:-_MOST_WAITING]
        for entry in self.site.entries:
            self.expect(entry)
            if entry.awaited:
                entry.hurry()

    def remove(self, program: InstalledProgram) -> None:
        """Drops a waiting program."""
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
        for entry in self.site.entries:
            self.expect(entry)

    def resume(self, entry: SiteEntry) -> None:
        """Goes on with the A/B test of an entry that was given up and that this one replaces.

        Where it runs another program by now, the contenders wait for its calls.
        """
        for index, (old, ab_test, since) in enumerate(self.ab_tests):
            if old.is_stale and old.ab_test is ab_test and old.described == entry.described:
                old.ab_test = None
                if ab_test.incumbent.program is entry.program:
                    entry.ab_test = ab_test
                    self.ab_tests[index] = entry, ab_test, since
                else:
                    del self.ab_tests[index]
                    self.waiting += [one.program for one in ab_test.alive if one.program not in self.site.programs]
                return

    def rival(self, described: Described) -> tuple[InstalledProgram, float] | None:
        """The program that lost to the one in use for such arguments, and what it took."""
        return self.rivals.get(geometry(described))

    def begin(self, entry: SiteEntry, described: Described) -> None:
        """Begins an A/B test of programs that wait for calls of an entry, with the one that they are to replace.

        A program of fast compilation is replaced without a test.
        """
        if not entry.awaited or entry.ab_test is not None or entry.is_stale:
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
            run = self.site.runner(program, call)
            if run is not None:
                contenders.append(Contender(program, run))
        self.waiting = [program for program in self.waiting if program not in serving]
        self._expect_all()
        before = median(entry.recent) if entry.recent else None
        if len(contenders) > 1:
            self._compete(entry, ABTest(contenders, self.site.config.contest_rounds, before))
        elif contenders and contenders[0].program is not entry.program:
            self.site.take(contenders[0].program)

    def _compete(self, entry: SiteEntry, ab_test: ABTest) -> None:
        self.site.counts.add("contests", site=self.site.name)
        entry.ab_test = ab_test
        self.ab_tests.append((entry, ab_test, self.recording.recorded))

    def note(self, entry: SiteEntry, test_round: Round | None, took: int) -> None:
        """Takes in a recorded call: it may decide an A/B test, or show that one takes too long."""
        ab_test = entry.ab_test
        if ab_test is not None and test_round is not None:
            ab_test.note(test_round, took)
            if ab_test.is_over:
                self._end(entry, ab_test)
        if self.ab_tests and self.recording.recorded - self.ab_tests[0][2] > _PATIENCE:
            self._end(*self.ab_tests[0][:2])

    def withdraw(self, entry: SiteEntry, contender: Contender) -> None:
        """Drops a contender that failed: the test of the others goes on, if there are any."""
        ab_test = entry.ab_test
        if ab_test is not None:
            ab_test.withdraw(contender)
            if ab_test.is_over:
                self._end(entry, ab_test)

    def _end(self, entry: SiteEntry, ab_test: ABTest) -> None:
        site = self.site
        entry.ab_test = None
        self.ab_tests = [one for one in self.ab_tests if one[1] is not ab_test]
        best, incumbent = ab_test.winner(), ab_test.incumbent
        if best is None:
            return
        times = ab_test.times(best)
        for one, typical in times.items():
            took = "never ran" if typical is None else f"{typical / 1e3:.1f} µs"
            log("tiers", f"{site.name}: {one.program.level}: {took}{', taken' if one is best else ''}")
        self.times.update((one.program.level.schedule, took) for one, took in times.items() if took is not None)
        won, lost = times[best], times[incumbent]
        is_old = incumbent.program in site.programs
        if best is not incumbent and is_old and lost is not None:
            self.rivals[geometry(entry.described)] = (incumbent.program, lost)
            if len(self.rivals) > _MOST_REMEMBERED:
                del self.rivals[next(iter(self.rivals))]
        before = lost if is_old else ab_test.before
        if best.program not in site.programs and won is not None and before is not None:
            best.program.gain = max(0.0, before - won)
        # Calls that the winner refuses are served by the last program of the tier below.
        rival = self.rival(entry.described)
        below = rival[1] if incumbent.program.tier is TIER3 and rival is not None else lost
        self.backoff.learn(best, times, site.clock())
        site.runtime.learn(site, entry, max(one.program.tier for one in ab_test.contenders), times, before, won)
        general = general_fallback(site.client, best, times, below)
        losers = [one.program for one in ab_test.contenders if one not in (best, general)]
        if any(best.program.tier < one.tier for one in losers):
            site.counts.add("switch_backs", site=site.name, what=str(best.program.level))
            log("tiers", f"{site.name}: more facts were not faster, it stays at {best.program.level}")
        replaced = [one for one in losers if one in site.programs and best.program.replaces(one)]
        for program in replaced:
            site.remove(program)
        if general is not None and general.program not in site.programs:
            site.install(general.program)  # for new entries: existing ones soon have a bridge
        site.take(best.program, replaced)

    def look_back(self, entry: SiteEntry, values: tuple[Any, ...]) -> bool:
        """Gives the program before another chance, where this one has become slower than that one was."""
        site = self.site
        if entry.rival is None or len(entry.recent) < (entry.recent.maxlen or 0):
            return False
        before, took = entry.rival
        if min(entry.recent) <= _SLOWER * took or before not in site.programs or not before.serves(values):
            return False
        entry.rival = None
        self.rivals.pop(geometry(entry.described), None)
        run = site.runner(before, entry.call._replace(values=values))
        if run is None:
            return False
        log("tiers", f"{site.name}: {entry.program.level} has become slow, compared again with {before.level}")
        contenders = [Contender(entry.program, entry.run), Contender(before, run)]
        self._compete(entry, ABTest(contenders, site.config.contest_rounds, None))
        entry.hurry()
        return True

    def _may_replace(self, program: InstalledProgram, entry: SiteEntry) -> bool:
        """Whether a program is worth comparing: of less specialized ones only that without traces is.

        Others of them wait for arguments that no program is specialized for, nor will be soon; generalised ones wait
        for calls that the program in use refuses.
        """
        assumed = entry.program.level.assumed
        if program.tier is TIER3 and program.is_bridge and set(program.level.assumed) < set(assumed):
            return False
        if program.tier is TIER3 or program.level.schedule is None:
            return True
        return numbers_in(self.site.client, assumed) == assumed and not self.site.is_coming(entry)


def geometry(described: Described) -> tuple[object, ...]:
    """The properties of arguments that programs depend on: shapes, strides and numbers, without alignment."""
    return tuple([(one.shape, one.strides) if isinstance(one, Meta) else one for one in described])
