"""Climbing: when a region asks for programs of a higher tier, what they are to assume, and who takes them in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tessera.tiers.client import Compiled, Level
from tessera.tiers.logs import log
from tessera.tiers.records import Described, ExecutionTier
from tessera.tiers.sites.backoff import Kind, Lessons
from tessera.tiers.sites.candidates import bridge_levels
from tessera.tiers.sites.entries import SiteEntry
from tessera.tiers.sites.invariants import few_cases, invariant_words, times_shown
from tessera.tiers.sites.programs import Installed
from tessera.tiers.sites.recording import Recording
from tessera.tiers.sites.request import Request
from tessera.tiers.sites.site import TieredSite
from tessera.tiers.sites.trials import Newcomers, geometry
from tessera.tiers.stand_ins import values_of
from tessera.tile.language.schedule import Schedule

TIER1, TIER2, TIER3 = ExecutionTier
_MOST_REMEMBERED = 256
_MOST_RECALLED = 2  # programs that are looked for
_MOST_MISSES = 4  # then only cases are looked for that had a program in this process
_AHEAD = 0.25
"""Of a threshold: where processes that compile have nothing else to do, programs are asked for when so much of it is
spent, to be there when the rest is. Nobody waits for them, and nobody else's programs do."""
_SMALL_PART = 0.01
"""Of the time that a region has spent lately: what makes up less is left where it is until it is hot by itself."""


class Climbing:
    """What a region has asked for, and why. Whoever changes it holds the region's lock."""

    def __init__(self, region: TieredSite, recording: Recording, newcomers: Newcomers, lessons: Lessons) -> None:
        self.region, self.recording, self.newcomers = region, recording, newcomers
        self.requests: list[Request] = []  # what is being compiled
        self.words: tuple[str, ...] | None = None  # what Tier 3 assumes
        self.bridges = 0
        self.generalised: set[tuple[str, ...]] = set()
        self.asked: dict[tuple[object, ...], set[ExecutionTier]] = {}
        self.lessons = lessons
        self._taken: dict[Level, None] = {}  # of Tier 3; the last ones last
        self._had: dict[tuple[object, ...], None] = {}  # cases that had a program of Tier 3
        self._looked: dict[tuple[object, ...], None] = {}  # cases for which one was looked for
        self._refused = 0  # recorded calls since somebody looked whether what is assumed still holds
        self._misses = 0  # one after the other: cases for which nothing was found

    def consider(self, entry: SiteEntry, described: Described) -> None:
        """Whether to compile something more for calls like this."""
        region = self.region
        if not region.climbs or entry.is_stale:
            return
        # Whoever has become part of a hot region need not wait for a call of his own that is recorded.
        config, compiling = region.config, region.runtime.compiling
        part = _AHEAD if compiling.has_room and compiling.is_free else 1.0
        if self._others_follow(part * config.tier3_threshold) and (others := self._siblings(entry)):
            region.runtime.compile(*others)
        if entry.contest is not None or entry.awaited:
            return
        if self.newcomers.look_back(entry, values_of(entry.call, described)):
            return
        if len(self.requests) > config.most_bridges:
            return
        asked = self._asked(described)
        for wanted, threshold, enabled in (
            (TIER2, config.tier2_threshold, config.enable_tier2_compilation),
            (TIER3, config.tier3_threshold, config.enable_tier3_specialization),
        ):
            # Where a program of the highest tier refused a call, one for it may be better than a general one.
            climbs = entry.tier < wanted or (wanted is TIER3 and entry.failed is not None)
            if not enabled or not climbs or wanted in asked or self._waits(wanted):
                continue
            first = self._is_first(wanted)
            general = () if first is not False or wanted is TIER2 else self._outgrown(entry, described)
            if first is None:
                continue
            if not self._is_hot(entry, wanted, part * threshold, first or bool(general)):
                if first:
                    self._look_again(entry, part * threshold)
                continue
            if not first and not general and entry.calls < config.bridge_calls:
                return
            if first and wanted is TIER3:
                entry, described = self._hottest(entry, described)
            if wanted is TIER3 and (first or self.words is None) and not self._is_shown(entry, described):
                continue
            if (request := self._climb(entry, described, wanted, is_bridge=not first, general=general)) is not None:
                siblings = self._siblings(entry) if first and wanted is TIER3 else []
                region.runtime.compile(request, *siblings)
                return

    def _asked(self, described: Described) -> set[ExecutionTier]:
        asked = self.asked.setdefault(self._case(described), set())
        if len(self.asked) > _MOST_REMEMBERED:
            del self.asked[next(iter(self.asked))]
        return asked

    def _case(self, described: Described) -> tuple[object, ...]:
        """What requests are remembered by: numbers only count where they are assumed."""
        assumed, region = self.words or (), self.region
        return tuple(
            [
                one if place not in region.numbers or region.client.paths[place] in assumed else None
                for place, one in enumerate(geometry(described))
            ]
        )

    def _waits(self, wanted: ExecutionTier) -> bool:
        """Whether what the region has asked for comes first.

        Tier 3 need not wait for more than the first program of Tier 2, nor for that where somebody has time for both.
        Other cases go along with the first one there, else when a program of it has won. A new kernel takes one tier
        after the other: whoever edits it may do so again.
        """
        region = self.region
        before = [one for one in self.requests if not one.is_bridge]
        room = region.runtime.compiling.has_room
        if any(one.tier is wanted for one in before):
            along = room or self.lessons.has_paid(self._kind(wanted))
            return wanted is TIER2 or not along or self.bridges >= region.config.most_bridges
        is_new = any(program.level.quick for program in region.programs)
        return any(is_new or (not room and one.taken is None) for one in before)

    def _is_first(self, wanted: ExecutionTier) -> bool | None:
        """Whether the region has never had a program of a tier; None while the first ones still compete."""
        region = self.region
        if any(program.tier >= wanted for program in region.programs):
            return False
        if any(program.tier is wanted for program in self.newcomers.programs):
            return None
        return not any(wanted in asked for asked in self.asked.values())

    def is_coming(self, entry: SiteEntry) -> bool:
        """Whether programs of Tier 3 are being compiled for such arguments."""
        case = geometry(entry.described)
        wanted = (one for one in self.requests if one.tier is TIER3 and not one.recalls)
        return any(geometry(one.call.described) == case for one in wanted)

    def _kind(self, wanted: ExecutionTier) -> Kind:
        return wanted, (self.words or ()) if wanted is TIER3 else ()

    def _is_hot(self, entry: SiteEntry, wanted: ExecutionTier, threshold: float, first: bool) -> bool:
        """Whether enough time was spent: by the region for its first program of a tier, then by the case itself.

        Where such programs have paid, or are under way for the first time, a case need only be a part of a hot region;
        where they have not, it has to be all the hotter.
        """
        region = self.region
        now, kind = region.clock(), self._kind(wanted)
        all_heat, heat = self.recording.heat_now(), entry.heat.at(now)
        if first:
            return all_heat >= threshold
        if self._is_promising(wanted) and all_heat >= threshold and heat >= _SMALL_PART * all_heat:
            return True
        return heat >= threshold * self.lessons.harder(kind, now)

    def _is_promising(self, wanted: ExecutionTier) -> bool:
        """Whether programs of a tier have paid, or are under way for the first time."""
        if self.lessons.has_paid(self._kind(wanted)):
            return True
        return any(one.tier is wanted and not one.is_bridge for one in self.requests)

    def _others_follow(self, threshold: float) -> bool:
        """Whether other cases go along with the first of Tier 3: the region is hot, and knows what to assume."""
        region = self.region
        if not region.config.enable_tier3_specialization or self.words is None or not self._is_promising(TIER3):
            return False
        return self.recording.heat_now() >= threshold

    def _look_again(self, entry: SiteEntry, threshold: float) -> None:
        """Records the call that will make the region hot, if those of other cases do not: nobody else would notice."""
        region, typical = self.region, entry.typical
        if region.config.sample_period is None and typical > 0:
            entry.hurry(max(0, int((threshold - self.recording.heat_now()) / typical)))

    def _hottest(self, entry: SiteEntry, described: Described) -> tuple[SiteEntry, Described]:
        """The case that takes most of a region's time, whoever calls: the most programs are tried for that."""
        now = self.region.clock()
        able = [one for one in self.region.entries if one.contest is None and not one.awaited and one.tier < TIER3]
        best = max(able, key=lambda one: _heat(one, now), default=entry)
        return (entry, described) if best is entry else (best, best.described)

    def _siblings(self, first: SiteEntry) -> list[Request]:
        """Requests for the other cases of a region besides the first, where somebody has time to compile them."""
        region, config = self.region, self.region.config
        found: list[Request] = []
        if not region.runtime.compiling.has_room or self._is_full():
            return found
        now = region.clock()
        least = _SMALL_PART * region.heat.at(now)
        usual = [
            (heat, entry)
            for entry in region.entries
            if entry is not first and entry.tier is not TIER3
            if entry.calls + entry.unrecorded >= config.bridge_calls and (heat := _heat(entry, now)) >= least
        ]
        for _, entry in sorted(usual, key=lambda one: -one[0]):
            if TIER3 in self.asked.get(self._case(entry.described), ()):
                continue
            if self._is_full():
                break
            if (request := self._climb(entry, entry.described, TIER3, is_bridge=True)) is not None:
                found.append(request)
        return found

    def _is_full(self) -> bool:
        """Whether there are as many programs for other cases, or requests, as there may be."""
        most = self.region.config.most_bridges
        return self.bridges >= most or len(self.requests) > most

    def _climb(
        self,
        entry: SiteEntry,
        described: Described,
        tier: ExecutionTier,
        *,
        is_bridge: bool,
        general: tuple[str, ...] = (),
    ) -> Request | None:
        """A request for programs of a tier; None where there is nothing to ask for."""
        region = self.region
        asked = self._asked(described)
        asked.add(tier)
        call = entry.call._replace(values=values_of(entry.call, described))
        current, most = entry.program.level.schedule, region.config.candidates
        levels: Sequence[Level] | Callable[[], Sequence[Level]]
        if tier is TIER2 and is_bridge:
            levels = bridge_levels(TIER2, (), [current, None])
        elif tier is TIER2:
            levels = partial(region.runtime.standard_compiler.levels, region.client, call, most)
            if region.client.knows_schedules(call):
                levels = levels()
        elif words := self._generalised(general) if general else self._words(entry, described, is_bridge):
            if is_bridge:
                levels = bridge_levels(TIER3, words, [*self._schedules_of(words), current, None])
            else:
                levels = region.runtime.specialized_compiler.levels(
                    region.client, call, words, current, self.newcomers.times, most
                )
        else:
            return None
        self.asked.setdefault(self._case(described), asked).add(tier)  # by now numbers may count that did not before
        if not region.runtime.climb_pays(region, entry, tier, most if callable(levels) else len(levels)):
            return None
        request = Request(region, call, tier, levels, is_bridge=is_bridge)
        self.requests.append(request)
        if is_bridge and not general and self.bridges < region.config.most_bridges:
            self.bridges += 1
            region.counts.add("bridges", region=region.name)
        return request

    def _schedules_of(self, words: tuple[str, ...]) -> list[Schedule | None]:
        """Under which schedule a program that assumes the same for other arguments is in use."""
        alike = (one for one in self.region.programs if one.tier is TIER3 and one.level.assumed == words)
        return [one.level.schedule for one in alike][:1]

    def _words(self, entry: SiteEntry, described: Described, is_bridge: bool) -> tuple[str, ...]:
        """What to assume: all where few cases are known, else what is invariant; less after too many bridges."""
        if not is_bridge or self.words is None:
            region, config = self.region, self.region.config
            records = () if self._is_few() else region.ring
            self.words = invariant_words(
                region.client.paths, records, described, config.invariance, config.least_shown if records else 0
            )
        elif self.bridges >= self.region.config.most_bridges:
            return self._generalised(self._fewer(entry, described))
        return self.words

    def _is_few(self) -> bool:
        """Whether so few cases make up the time that each may have a program."""
        config = self.region.config
        return few_cases(self.region.ring, config.most_bridges + 1, config.invariance)

    def _is_shown(self, entry: SiteEntry, described: Described) -> bool:
        """Whether enough calls have shown what there is to assume: one that took long is still one."""
        region, least = self.region, self.region.config.least_shown
        if not region.config.enable_tracing:
            return entry.calls >= least
        if self._is_few():
            return times_shown(region.client.paths, region.ring, described) >= least
        return sum(record.stands_for for record in region.ring) >= least

    def _outgrown(self, entry: SiteEntry, described: Described) -> tuple[str, ...]:
        """What to assume instead, where a guard has refused calls that are more than a few cases; () elsewhere."""
        if entry.failed is None or not self.words:
            return ()
        self._refused += 1
        if self._refused < self.region.config.bridge_calls:
            return ()
        self._refused = 0
        return () if self._is_few() else self._fewer(entry, described)

    def _fewer(self, entry: SiteEntry, described: Described) -> tuple[str, ...]:
        """What is assumed without what was refused and what varies with it; () where that was asked for before."""
        region, config = self.region, self.region.config
        refused = {
            guard.word
            for program in region.programs
            if program.tier is TIER3
            for guard in program.compiled.guards
            if not guard.check_function(values_of(entry.call, described))
        }
        # What varies with what was refused would be refused next: the strides of a longer row, say.
        same = invariant_words(region.client.paths, region.ring, described, config.invariance)
        words = tuple(sorted((set(self.words or ()) - refused).intersection(same)))
        there = any(program.level.assumed == words for program in region.programs)
        return () if there or words in self.generalised else words

    def _generalised(self, words: tuple[str, ...]) -> tuple[str, ...]:
        if words:
            region = self.region
            self.generalised.add(words)
            region.counts.add("generalisations", region=region.name)
            log("tiers", f"{region.name}: generalised, it now assumes {', '.join(words)}")
        return words

    # What was there before

    def recall(self, entry: SiteEntry) -> None:
        """Looks for a program of Tier 3 that was there before, for a case that has come and has none.

        It may have made room for others, or be of another process. What was in use in this process is taken, and what
        another one has left competes.
        """
        region, case = self.region, self._case(entry.described)
        if entry.tier is TIER3:
            _keep(self._had, case)
            return
        levels = [level for level in reversed(self._taken) if level.assumed][:_MOST_RECALLED]
        if not levels or not region.climbs or not region.config.enable_tier3_specialization or case in self._looked:
            return
        if case not in self._had and (self._misses >= _MOST_MISSES or TIER3 in self.asked.get(case, ())):
            return
        _keep(self._looked, case)
        request = Request(region, entry.call, TIER3, levels, is_bridge=True, recalls=True)
        self.requests.append(request)
        region.runtime.compiling.submit(request)

    def took(self, level: Level) -> None:
        """A program of Tier 3 is in use: others like it may be found where it was.

        One that assumes less serves calls that others refuse; it does not make less of what to assume, where that pays.
        """
        words = self.words or ()
        if not set(level.assumed) < set(words) or not self.lessons.has_paid((TIER3, words)):
            self.words = level.assumed
        self._taken.pop(level, None)
        _keep(self._taken, level)

    def dropped(self) -> None:
        """A program of Tier 3 has gone: its case may look for it again."""
        self._looked.clear()

    def unlearn(self) -> None:
        """Programs were let go on purpose: they are not looked for where they were, until one is in use again."""
        self._taken.clear()
        self._had.clear()

    def _take_back(self, request: Request, found: Sequence[Installed]) -> None:
        region, case = self.region, self._case(request.call.described)
        self._misses = 0 if found else self._misses + 1
        for program in found[:1]:
            region.counts.add("loads", region=region.name, what=str(program.level))
            log("tiers", f"{region.name}: {program.level} is found again")
            self.asked.setdefault(case, set()).add(TIER3)
            if case in self._had:
                region.take(program)
            else:
                self.newcomers.add([program])

    # What was compiled

    def compiled(self, request: Request, found: Sequence[tuple[Level, Compiled]]) -> None:
        """Takes in what was compiled; the next calls compare it with what they run now."""
        region = self.region
        made = [request.installed(level, one) for level, one in found]  # binds them, before anybody has to wait
        with region.lock:
            if request not in self.requests:  # the region was forgotten meanwhile
                return
            self.requests.remove(request)
            if request.recalls:
                self._take_back(request, made)
                return
            request.done()
            region.counts.add("compiles", len(found), region=region.name)
            # What came first has competed already: it is in use, still competes, or gets another chance.
            there = [*region.programs, *self.newcomers.programs]
            self.newcomers.add([one for one in made if one not in there])

    def arrived(self, request: Request, level: Level, compiled: Compiled) -> None:
        """One of several programs is there: the first of them does not wait for the others.

        It takes over at once from what was only made to be there soon, and from the same program of a lower tier; else
        it competes.
        """
        region = self.region
        program = request.installed(level, compiled)
        with region.lock:
            if request not in self.requests or request.taken is not None or request.recalls:
                return
            request.taken = program
            if request.is_known(compiled) or any(entry.program.level.quick for entry in region.entries):
                region.take(program)
            elif len(request.levels) > 1:
                self.newcomers.add([program])


def _heat(entry: SiteEntry, now: int) -> float:
    """Of a case, with its calls that were not recorded yet."""
    return entry.heat.at(now) + entry.uncounted


def _keep(known: dict[Any, None], one: object) -> None:
    known[one] = None
    if len(known) > _MOST_REMEMBERED:
        del known[next(iter(known))]
