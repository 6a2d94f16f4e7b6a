"""The tier policy: when a site asks for programs of a higher tier, and the facts that these assume."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tessera.tiers.client import Compiled, TierLevel
from tessera.tiers.logs import log
from tessera.tiers.records import Described, ExecutionTier
from tessera.tiers.sites.backoff import Backoff, Kind
from tessera.tiers.sites.candidates import bridge_levels, tier2_levels, tier3_levels
from tessera.tiers.sites.entries import SiteEntry
from tessera.tiers.sites.invariants import few_cases, invariant_words, times_shown
from tessera.tiers.sites.programs import InstalledProgram
from tessera.tiers.sites.recording import Recording
from tessera.tiers.sites.request import Request
from tessera.tiers.sites.site import TieredSite
from tessera.tiers.sites.trials import Candidates, geometry
from tessera.tiers.stand_ins import values_of
from tessera.tile.language.schedule import Schedule

TIER1, TIER2, TIER3 = ExecutionTier
_MOST_REMEMBERED = 256
_MOST_RECALLED = 2  # programs that are looked for
_MOST_MISSES = 4  # then only cases are looked for that had a program in this process
_AHEAD = 0.25
"""Of a threshold: where processes that compile have nothing else to do, programs are asked for when so much of it is
spent, to be ready when the rest is. No call and no other request waits for them."""
_SMALL_PART = 0.01
"""Of the time that a site has spent lately: cases below it stay at their tier until they are hot by themselves."""


class TierPolicy:
    """The requests of a site, and the decision to make them. Changes need the site's lock."""

    def __init__(self, site: TieredSite, recording: Recording, candidates: Candidates, backoff: Backoff) -> None:
        self.site, self.recording, self.candidates = site, recording, candidates
        self.requests: list[Request] = []  # what is being compiled
        self.words: tuple[str, ...] | None = None  # what Tier 3 assumes
        self.bridges = 0
        self.generalised: set[tuple[str, ...]] = set()
        self.requested: dict[tuple[object, ...], set[ExecutionTier]] = {}
        self.backoff = backoff
        self._taken: dict[TierLevel, None] = {}  # of Tier 3; the last ones last
        self._had: dict[tuple[object, ...], None] = {}  # cases that had a program of Tier 3
        self._looked: dict[tuple[object, ...], None] = {}  # cases for which one was looked for
        self._refused = 0  # recorded calls since the last check whether the assumptions still hold
        self._misses = 0  # cases in a row for which nothing was found

    def consider(self, entry: SiteEntry, described: Described) -> None:
        """Requests more programs for calls like this, where they are worth it."""
        site = self.site
        if not site.can_tier_up or entry.is_stale:
            return
        # Other cases of a hot site need not wait for a recorded call of their own.
        config, compiling = site.config, site.runtime.compiling
        part = _AHEAD if compiling.has_room and compiling.is_free else 1.0
        if self._siblings_may_follow(part * config.tier3_threshold) and (others := self._siblings(entry)):
            site.runtime.compile(*others)
        if entry.ab_test is not None or entry.awaited:
            return
        if self.candidates.look_back(entry, values_of(entry.call, described)):
            return
        if len(self.requests) > config.most_bridges:
            return
        requested = self._requested_tiers(described)
        for wanted, threshold, enabled in (
            (TIER2, config.tier2_threshold, config.enable_tier2_compilation),
            (TIER3, config.tier3_threshold, config.enable_tier3_specialization),
        ):
            # Where a program of the highest tier refused a call, one for it may be better than a general one.
            is_wanted = entry.tier < wanted or (wanted is TIER3 and entry.failed is not None)
            if not enabled or not is_wanted or wanted in requested or self._waits(wanted):
                continue
            first = self._is_first(wanted)
            general = () if first is not False or wanted is TIER2 else self._generalised_words(entry, described)
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
            if (
                request := self._request_tier(entry, described, wanted, is_bridge=not first, general=general)
            ) is not None:
                siblings = self._siblings(entry) if first and wanted is TIER3 else []
                site.runtime.compile(request, *siblings)
                return

    def _requested_tiers(self, described: Described) -> set[ExecutionTier]:
        requested = self.requested.setdefault(self._case(described), set())
        if len(self.requested) > _MOST_REMEMBERED:
            del self.requested[next(iter(self.requested))]
        return requested

    def _case(self, described: Described) -> tuple[object, ...]:
        """The key of a request: numbers only count where they are assumed."""
        assumed, site = self.words or (), self.site
        return tuple(
            [
                one if index not in site.numbers or site.client.paths[index] in assumed else None
                for index, one in enumerate(geometry(described))
            ]
        )

    def _waits(self, wanted: ExecutionTier) -> bool:
        """Whether earlier requests of the site come first.

        Tier 3 waits only for the first program of Tier 2, and not for that where there are processes for both. Other
        cases go along with the first one there, else when a program of it has won. A new kernel takes one tier after
        the other: its user may be about to edit it again.
        """
        site = self.site
        before = [one for one in self.requests if not one.is_bridge]
        room = site.runtime.compiling.has_room
        if any(one.tier is wanted for one in before):
            along = room or self.backoff.has_paid(self._kind(wanted))
            return wanted is TIER2 or not along or self.bridges >= site.config.most_bridges
        is_new = any(program.level.quick for program in site.programs)
        return any(is_new or (not room and one.taken is None) for one in before)

    def _is_first(self, wanted: ExecutionTier) -> bool | None:
        """Whether the site has never had a program of a tier; None while the first ones still compete."""
        site = self.site
        if any(program.tier >= wanted for program in site.programs):
            return False
        if any(program.tier is wanted for program in self.candidates.programs):
            return None
        return not any(wanted in requested for requested in self.requested.values())

    def is_coming(self, entry: SiteEntry) -> bool:
        """Whether programs of Tier 3 are being compiled for such arguments."""
        case = geometry(entry.described)
        wanted = (one for one in self.requests if one.tier is TIER3 and not one.recalls)
        return any(geometry(one.call.described) == case for one in wanted)

    def _kind(self, wanted: ExecutionTier) -> Kind:
        return wanted, (self.words or ()) if wanted is TIER3 else ()

    def _is_hot(self, entry: SiteEntry, wanted: ExecutionTier, threshold: float, first: bool) -> bool:
        """Whether enough time was spent: by the site for its first program of a tier, then by the case itself.

        Where such programs have paid, or are under way for the first time, a case need only be a part of a hot site;
        where they have not, it has to be all the hotter.
        """
        site = self.site
        now, kind = site.clock(), self._kind(wanted)
        site_hotness, hotness = self.recording.hotness_now(), entry.hotness.at(now)
        if first:
            return site_hotness >= threshold
        if self._is_promising(wanted) and site_hotness >= threshold and hotness >= _SMALL_PART * site_hotness:
            return True
        return hotness >= threshold * self.backoff.factor(kind, now)

    def _is_promising(self, wanted: ExecutionTier) -> bool:
        """Whether programs of a tier have paid, or are under way for the first time."""
        if self.backoff.has_paid(self._kind(wanted)):
            return True
        return any(one.tier is wanted and not one.is_bridge for one in self.requests)

    def _siblings_may_follow(self, threshold: float) -> bool:
        """Whether other cases go along with the first of Tier 3: the site is hot, and knows what to assume."""
        site = self.site
        if not site.config.enable_tier3_specialization or self.words is None or not self._is_promising(TIER3):
            return False
        return self.recording.hotness_now() >= threshold

    def _look_again(self, entry: SiteEntry, threshold: float) -> None:
        """Records the call that will make the site hot, if those of other cases do not."""
        site, typical = self.site, entry.typical
        if site.config.sample_period is None and typical > 0:
            entry.hurry(max(0, int((threshold - self.recording.hotness_now()) / typical)))

    def _hottest(self, entry: SiteEntry, described: Described) -> tuple[SiteEntry, Described]:
        """The case that takes most of a site's time, whichever is called: most programs are tried for that."""
        now = self.site.clock()
        able = [one for one in self.site.entries if one.ab_test is None and not one.awaited and one.tier < TIER3]
        best = max(able, key=lambda one: _hotness(one, now), default=entry)
        return (entry, described) if best is entry else (best, best.described)

    def _siblings(self, first: SiteEntry) -> list[Request]:
        """Requests for the other cases of a site besides the first, where processes have time to compile them."""
        site, config = self.site, self.site.config
        found: list[Request] = []
        if not site.runtime.compiling.has_room or self._is_full():
            return found
        now = site.clock()
        least = _SMALL_PART * site.hotness.at(now)
        usual = [
            (hotness, entry)
            for entry in site.entries
            if entry is not first and entry.tier is not TIER3
            if entry.calls + entry.unrecorded >= config.bridge_calls and (hotness := _hotness(entry, now)) >= least
        ]
        for _, entry in sorted(usual, key=lambda one: -one[0]):
            if TIER3 in self.requested.get(self._case(entry.described), ()):
                continue
            if self._is_full():
                break
            if (request := self._request_tier(entry, entry.described, TIER3, is_bridge=True)) is not None:
                found.append(request)
        return found

    def _is_full(self) -> bool:
        """Whether there are as many programs for other cases, or requests, as there may be."""
        most = self.site.config.most_bridges
        return self.bridges >= most or len(self.requests) > most

    def _request_tier(
        self,
        entry: SiteEntry,
        described: Described,
        tier: ExecutionTier,
        *,
        is_bridge: bool,
        general: tuple[str, ...] = (),
    ) -> Request | None:
        """A request for programs of a tier; None where there is nothing to ask for."""
        site = self.site
        requested = self._requested_tiers(described)
        requested.add(tier)
        call = entry.call._replace(values=values_of(entry.call, described))
        current, most = entry.program.level.schedule, site.config.candidates
        levels: Sequence[TierLevel] | Callable[[], Sequence[TierLevel]]
        if tier is TIER2 and is_bridge:
            levels = bridge_levels(TIER2, (), [current, None])
        elif tier is TIER2:
            levels = partial(tier2_levels, site.client, call, most, site.runtime.schedule_history)
            if site.client.knows_schedules(call):
                levels = levels()
        elif words := self._generalised(general) if general else self._words(entry, described, is_bridge):
            if is_bridge:
                levels = bridge_levels(TIER3, words, [*self._schedules_of(words), current, None])
            else:
                times, history = self.candidates.times, site.runtime.schedule_history
                levels = tier3_levels(site.client, call, words, current, times, most, history)
        else:
            return None
        self.requested.setdefault(self._case(described), requested).add(
            tier
        )  # by now numbers may count that did not before
        if not site.runtime.tier_up_pays(site, entry, tier, most if callable(levels) else len(levels)):
            return None
        request = Request(site, call, tier, levels, is_bridge=is_bridge)
        self.requests.append(request)
        if is_bridge and not general and self.bridges < site.config.most_bridges:
            self.bridges += 1
            site.counts.add("bridges", site=site.name)
        return request

    def _schedules_of(self, words: tuple[str, ...]) -> list[Schedule | None]:
        """Under which schedule a program that assumes the same for other arguments is in use."""
        alike = (one for one in self.site.programs if one.tier is TIER3 and one.level.assumed == words)
        return [one.level.schedule for one in alike][:1]

    def _words(self, entry: SiteEntry, described: Described, is_bridge: bool) -> tuple[str, ...]:
        """The words to assume: all where few cases are known, else the invariant ones; fewer after too many bridges."""
        if not is_bridge or self.words is None:
            site, config = self.site, self.site.config
            records = () if self._is_few() else site.ring
            self.words = invariant_words(
                site.client.paths, records, described, config.invariance, config.least_shown if records else 0
            )
        elif self.bridges >= self.site.config.most_bridges:
            return self._generalised(self._words_without_refused(entry, described))
        return self.words

    def _is_few(self) -> bool:
        """Whether so few cases make up the time that each may have a program."""
        config = self.site.config
        return few_cases(self.site.ring, config.most_bridges + 1, config.invariance)

    def _is_shown(self, entry: SiteEntry, described: Described) -> bool:
        """Whether enough calls have shown the facts to assume: one that took long is still one."""
        site, least = self.site, self.site.config.least_shown
        if not site.config.enable_tracing:
            return entry.calls >= least
        if self._is_few():
            return times_shown(site.client.paths, site.ring, described) >= least
        return sum(record.stands_for for record in site.ring) >= least

    def _generalised_words(self, entry: SiteEntry, described: Described) -> tuple[str, ...]:
        """The words to assume instead, where a guard has refused calls of more than a few cases; () elsewhere."""
        if entry.failed is None or not self.words:
            return ()
        self._refused += 1
        if self._refused < self.site.config.bridge_calls:
            return ()
        self._refused = 0
        return () if self._is_few() else self._words_without_refused(entry, described)

    def _words_without_refused(self, entry: SiteEntry, described: Described) -> tuple[str, ...]:
        """The assumed words without those that were refused and vary with them; () where that was requested before."""
        site, config = self.site, self.site.config
        refused = {
            guard.word
            for program in site.programs
            if program.tier is TIER3
            for guard in program.compiled.guards
            if not guard.check_function(values_of(entry.call, described))
        }
        # Words that vary with refused ones would be refused next: the strides of a longer row, say.
        same = invariant_words(site.client.paths, site.ring, described, config.invariance)
        words = tuple(sorted((set(self.words or ()) - refused).intersection(same)))
        there = any(program.level.assumed == words for program in site.programs)
        return () if there or words in self.generalised else words

    def _generalised(self, words: tuple[str, ...]) -> tuple[str, ...]:
        if words:
            site = self.site
            self.generalised.add(words)
            site.counts.add("generalisations", site=site.name)
            log("tiers", f"{site.name}: generalised, it now assumes {', '.join(words)}")
        return words

    # Programs from before

    def recall(self, entry: SiteEntry) -> None:
        """Looks for a program of Tier 3 that was there before, for a case that has come and has none.

        It may have been evicted, or be of another process. One that was in use in this process is taken, one of another
        process is compared.
        """
        site, case = self.site, self._case(entry.described)
        if entry.tier is TIER3:
            _keep(self._had, case)
            return
        levels = [level for level in reversed(self._taken) if level.assumed][:_MOST_RECALLED]
        if not levels or not site.can_tier_up or not site.config.enable_tier3_specialization or case in self._looked:
            return
        if case not in self._had and (self._misses >= _MOST_MISSES or TIER3 in self.requested.get(case, ())):
            return
        _keep(self._looked, case)
        request = Request(site, entry.call, TIER3, levels, is_bridge=True, recalls=True)
        self.requests.append(request)
        site.runtime.compiling.submit(request)

    def took(self, level: TierLevel) -> None:
        """Notes that a program of Tier 3 is in use: others like it may be on the disk.

        One that assumes less serves calls that others refuse; it does not reduce the words to assume where these pay.
        """
        words = self.words or ()
        if not set(level.assumed) < set(words) or not self.backoff.has_paid((TIER3, words)):
            self.words = level.assumed
        self._taken.pop(level, None)
        _keep(self._taken, level)

    def dropped(self) -> None:
        """Notes that a program of Tier 3 was dropped: its case may look for it again."""
        self._looked.clear()

    def forget_taken(self) -> None:
        """Notes that programs were dropped on purpose: they are not loaded until one is in use again."""
        self._taken.clear()
        self._had.clear()

    def _take_back(self, request: Request, found: Sequence[InstalledProgram]) -> None:
        site, case = self.site, self._case(request.call.described)
        self._misses = 0 if found else self._misses + 1
        for program in found[:1]:
            site.counts.add("loads", site=site.name, what=str(program.level))
            log("tiers", f"{site.name}: {program.level} is found again")
            self.requested.setdefault(case, set()).add(TIER3)
            if case in self._had:
                site.take(program)
            else:
                self.candidates.add([program])

    # Compiled programs

    def compiled(self, request: Request, found: Sequence[tuple[TierLevel, Compiled]]) -> None:
        """Takes in compiled programs; the next calls compare them with the one in use."""
        site = self.site
        made = [request.installed(level, one) for level, one in found]  # binds them, before a call has to wait
        with site.lock:
            if request not in self.requests:  # the site was forgotten meanwhile
                return
            self.requests.remove(request)
            if request.recalls:
                self._take_back(request, made)
                return
            request.done()
            site.counts.add("compiles", len(found), site=site.name)
            # The first of them was tested already: it is in use, still tested, or gets another chance.
            there = [*site.programs, *self.candidates.programs]
            self.candidates.add([one for one in made if one not in there])

    def arrived(self, request: Request, level: TierLevel, compiled: Compiled) -> None:
        """Takes in one of several programs: the first of them does not wait for the others.

        It replaces at once a program of fast compilation, and the same program of a lower tier; else it is tested.
        """
        site = self.site
        program = request.installed(level, compiled)
        with site.lock:
            if request not in self.requests or request.taken is not None or request.recalls:
                return
            request.taken = program
            if request.is_known(compiled) or any(entry.program.level.quick for entry in site.entries):
                site.take(program)
            elif len(request.levels) > 1:
                self.candidates.add([program])


def _hotness(entry: SiteEntry, now: int) -> float:
    """Of a case, with its calls that were not recorded yet."""
    return entry.hotness.at(now) + entry.uncounted


def _keep(known: dict[Any, None], one: object) -> None:
    known[one] = None
    if len(known) > _MOST_REMEMBERED:
        del known[next(iter(known))]
