"""The manager of compiled programs: how many there may be, which go first, and what the next process starts with."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tessera.errors import TesseraError
from tessera.runtime.cache import store as cache
from tessera.runtime.tensor.meta import Meta
from tessera.tiers.client import (
    CAUSAL,
    Call,
    Choice,
    Client,
    Compiled,
    GuardType,
    RuntimeGuard,
    TierLevel,
    argument_named,
)
from tessera.tiers.config import RuntimeConfig
from tessera.tiers.logs import log
from tessera.tiers.records import ExecutionTier, PerformanceSample
from tessera.tiers.sites.counts import Counts
from tessera.tiers.sites.hotness import Clock
from tessera.tiers.sites.programs import InstalledProgram
from tessera.tiers.sites.specialization_site import SpecializationSite
from tessera.tile.language.schedule import Schedule

_FORM = 1
_MOST_SAMPLES = 64
_GENERATORS = "SpecializedKernelGenerator or TraceSpecializationEngine"


@dataclass(frozen=True)
class SpecializationContext:
    """The facts that a specialised program depends on."""

    constant_seq_len: int | None
    constant_head_dim: int | None
    specialized_dtype: str | None
    always_causal: bool | None
    optimal_tile_config: Schedule | None
    memory_layout: dict[str, int]
    """The strides that it assumes, by words: `q.stride[0]`."""
    runtime_guards: tuple[RuntimeGuard, ...]


@dataclass(frozen=True)
class SpecializedKernel:
    """A compiled program as the manager lists it."""

    kernel_name: str
    context: SpecializationContext
    guards: tuple[RuntimeGuard, ...]
    level: TierLevel
    nbytes: int
    usage_count: int
    average_time_ms: float | None
    expected_performance_tflops: float | None = None
    """Of a program that was generated for traces; for others performance is measured."""
    register_usage: int | None = None
    shared_memory_usage: int | None = None
    compiled: Compiled | None = None
    """The program, of one that was generated: `bind` makes a function of it."""
    client: Client | None = None
    call: Call | None = None
    """The client that it was generated from, and the call that it was generated for."""


class KernelManager:
    """Keeps programs of tiers above the first within bounds: a count, and bytes of code. Any thread may use it."""

    def __init__(
        self,
        config: RuntimeConfig,
        counts: Counts,
        clock: Clock,
        sites: Callable[[], Sequence[SpecializationSite]] = list,
    ) -> None:
        self.config, self._counts, self._clock, self._sites = config, counts, clock, sites
        self._lock = threading.RLock()
        self._programs: dict[int, InstalledProgram] = {}
        self._condemned: list[InstalledProgram] = []
        self._samples: dict[str, list[PerformanceSample]] = {}

    def forked(self) -> None:
        """In the child of a fork: the thread that held the lock is not there."""
        self._lock = threading.RLock()

    def __len__(self) -> int:
        with self._lock:  # while one comes in, there may be one too many
            return len(self._programs)

    @property
    def nbytes(self) -> int:
        return sum(program.nbytes for program in list(self._programs.values()))

    def admit(self, program: InstalledProgram) -> None:
        """Takes a site's program in; others may have to go, at the next `sweep`."""
        if not isinstance(program, InstalledProgram):
            raise TesseraError(
                f"a site admits its own programs, got {type(program).__name__}",
                hint="load_specialized_kernel takes one that was generated",
            )
        with self._lock:
            self._programs[id(program)] = program
            self._shrink(self.config.max_specialized_kernels, self.config.max_compilation_memory_mb << 20, program)
            self._counts.event_log.add("memory", program.site.name, amount=self.nbytes)

    def released(self, program: InstalledProgram) -> None:
        """Forgets a program that its site has dropped."""
        with self._lock:
            if self._programs.pop(id(program), None) is not None:
                self._counts.event_log.add("memory", program.site.name, amount=self.nbytes)

    def _shrink(self, most: int, most_bytes: int, newest: InstalledProgram | None = None) -> None:
        while self._programs and (len(self._programs) > most or self.nbytes > most_bytes):
            candidates = [one for one in self._programs.values() if one is not newest] or list(self._programs.values())
            victim = min(candidates, key=self._worth)
            del self._programs[id(victim)]
            self._condemned.append(victim)

    def _worth(self, program: InstalledProgram) -> tuple[float, int]:
        """The time that a program has saved, halved for every half-life since its last use; then how recent that is."""
        passed = max(0, self._clock() - program.last_used)
        saved = program.uses * max(program.gain, 1.0)
        return saved * 0.5 ** (passed / self.config.half_life), program.last_used

    def sweep(self) -> None:
        """Drops evicted programs. It takes the locks of their sites: the caller must hold none of these."""
        while self._condemned:
            with self._lock:
                if not self._condemned:
                    return
                victim = self._condemned.pop()
            self._counts.add("evictions", site=victim.site.name, what=str(victim.level))
            log("tiers", f"{victim.site.name}: {victim.level} makes room for others")
            victim.site.drop(victim)

    # The specification's names

    def specialized_kernels(self) -> list[SpecializedKernel]:
        """All programs above Tier 1."""
        with self._lock:
            return [_as_specialized_kernel(program) for program in self._programs.values()]

    def find_best_specialized_kernel(self, values: Sequence[Any]) -> SpecializedKernel | None:
        """The program of the highest tier whose guards hold for arguments, if it was made for such."""
        with self._lock:
            serving = [one for one in self._programs.values() if _serves(one, values)]
        best = max(serving, key=lambda one: (one.tier, len(one.compiled.guards)), default=None)
        return None if best is None else _as_specialized_kernel(best)

    def load_specialized_kernel(self, kernel: SpecializedKernel) -> SpecializedKernel:
        """Puts a generated program to use: calls like the one it was generated for run it while its guards hold.

        It replaces a program of its tier that depends on the same facts.
        """
        site, compiled = self._site_for(kernel), kernel.compiled
        assert compiled is not None
        program = InstalledProgram(site, kernel.level, compiled)
        facts = {guard[:5] for guard in compiled.guards}
        with site.lock:
            beside = [one for one in site.programs if one.tier is program.tier]
            replaced = [one for one in beside if {guard[:5] for guard in one.compiled.guards} == facts]
            for one in replaced:
                site.remove(one)
            site.take(program, replaced)
        self._counts.add("loads", site=site.name, what=str(kernel.level))
        self.sweep()
        return _as_specialized_kernel(program)

    def _site_for(self, kernel: SpecializedKernel) -> SpecializationSite:
        """The site whose calls a generated program is for."""
        if not isinstance(kernel, SpecializedKernel):
            raise TesseraError(
                f"a manager loads a SpecializedKernel, got {type(kernel).__name__}", hint=f"make one by {_GENERATORS}"
            )
        if kernel.compiled is None or kernel.call is None or kernel.client is None:
            raise TesseraError(
                f"this SpecializedKernel of {kernel.kernel_name} only describes a program, and has none with it",
                hint=f"load one that was made by {_GENERATORS}",
            )
        if kernel.level.tier is ExecutionTier.TIER1_INTERPRETER:
            raise TesseraError(f"{kernel.kernel_name}: programs of Tier 1 are made when calls need them")
        made, running = kernel.call.context.settings, kernel.call.fixed[0]
        if (made.target, made.level) != (running.target, running.level):
            raise TesseraError(
                f"{kernel.kernel_name} was generated for {made.target} {made.level}, "
                f"its calls run on {running.target} {running.level}",
                hint="generate it without a target architecture",
            )
        of = getattr(kernel.client, "kernel", None)
        for site in self._sites():
            if getattr(site.client, "kernel", None) is of and site.first.fixed == kernel.call.fixed:
                return site
        raise TesseraError(
            f"this runtime has not run {kernel.kernel_name} with arguments of such types",
            hint="call it once in the runtime, with the arguments that the program is for, before it is loaded",
        )

    def unload_specialized_kernel(self, kernel_name: str) -> None:
        """Drops all programs of a client above Tier 1; they come back when they are loaded or compiled again."""
        with self._lock:
            gone = [one for one in self._programs.values() if one.site.name == kernel_name]
        self._let_go(gone)

    def _let_go(self, gone: Sequence[InstalledProgram]) -> None:
        for program in gone:
            program.site.let_go(program)

    def evict_least_used_kernels(self, target_count: int) -> None:
        """Drops programs until so many are left."""
        with self._lock:
            self._shrink(max(0, target_count), 1 << 62)
        self.sweep()

    def clear_kernel_cache(self) -> None:
        """Drops all programs above Tier 1; calls go on at Tier 1 until they are hot again."""
        with self._lock:
            gone = list(self._programs.values())
        self._let_go(gone)
        self.evict_least_used_kernels(0)

    def record_kernel_performance(self, kernel_key: str, sample: PerformanceSample) -> None:
        """Keeps a sample under a name; the last few of each name are there."""
        with self._lock:
            known = self._samples.setdefault(kernel_key, [])
            known.append(sample)
            del known[:-_MOST_SAMPLES]

    def kernel_performance(self, kernel_key: str) -> list[PerformanceSample]:
        with self._lock:
            return list(self._samples.get(kernel_key, ()))

    # Between processes

    def remember(self, identity: str, levels: Sequence[TierLevel]) -> None:
        """Stores the levels that were best for a site in the cache; losing them is no harm."""
        said = {"form": _FORM, "levels": [_encoded(level) for level in levels]}
        cache.shared().put(cache.key_of("tiers", identity), json.dumps(said).encode())

    def remembered(self, identity: str) -> list[TierLevel]:
        """The levels that `remember` stored, in this or another process; none where they cannot be read."""
        data = cache.shared().get(cache.key_of("tiers", identity))
        try:
            said: Any = json.loads(b"{}" if data is None else data)
            return [_decoded(one) for one in said["levels"]] if said.get("form") == _FORM else []
        except cache.UNREADABLE:
            return []


def _encoded(level: TierLevel) -> dict[str, Any]:
    schedule = None if level.schedule is None else asdict(level.schedule)
    return {"tier": int(level.tier), "assumed": list(level.assumed), "schedule": schedule}


def _decoded(found: Mapping[str, Any]) -> TierLevel:
    schedule = found["schedule"]
    if schedule is not None:
        block = schedule.pop("block")
        kind = Choice if "rank" in schedule else Schedule
        schedule = kind(block=None if block is None else tuple(block), **schedule)
    return TierLevel(ExecutionTier(found["tier"]), tuple(map(str, found["assumed"])), schedule)


def _serves(program: InstalledProgram, values: Sequence[Any]) -> bool:
    try:
        return program.serves(values)
    except (AttributeError, IndexError, TypeError):  # arguments of another site
        return False


def _is_causal(client: Client, call: Call, guards: Sequence[RuntimeGuard]) -> bool | None:
    """Whether a program is for causal calls, by a static flag or a guard; None for one that serves both."""
    guarded = {guard.word: guard.params for guard in guards}
    if any(name in client.paths for name in CAUSAL):
        return next((bool(guarded[name]) for name in CAUSAL if name in guarded), None)
    found = argument_named(client, call, CAUSAL)
    return None if found is None else bool(found)


def context_of(client: Client, call: Call, level: TierLevel, guards: tuple[RuntimeGuard, ...]) -> SpecializationContext:
    """The facts that a program of a level depends on, which was compiled for such calls."""
    meta = next((one for one in call.described if isinstance(one, Meta)), None)

    def size(axis: int) -> int | None:
        """Of the first array, counted from its last axis, where the program depends on it."""
        word = "" if meta is None else f"{client.paths[0]}.size[{meta.ndim - axis}]"
        return next((int(one.params) for one in guards if one.word == word), None)

    return SpecializationContext(
        size(2),
        size(1),
        None if meta is None else str(meta.dtype),
        _is_causal(client, call, guards),
        level.schedule,
        {one.word: int(one.params) for one in guards if one.guard_type is GuardType.STRIDE_GUARD},
        guards,
    )


def _as_specialized_kernel(program: InstalledProgram) -> SpecializedKernel:
    site, guards = program.site, program.compiled.guards
    context = context_of(site.client, site.first, program.level, guards)
    average = program.spent / program.uses / 1e6 if program.uses else None
    return SpecializedKernel(site.name, context, guards, program.level, program.nbytes, program.uses, average)
