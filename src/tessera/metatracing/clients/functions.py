"""Jitted functions as clients of the tiers: one client for each structure of arguments, one site for their kinds.

A function is traced with its lengths open; its guards are those of the trace. All tiers compile this one graph: Tier
2 with blocks chosen for the sizes that calls had, Tier 3 with sizes and numbers in it. The graph goes to the process
that compiles, not the function: nothing of a user's is sent, and nothing is traced twice.
"""

from __future__ import annotations

import inspect
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from tessera.errors import CompileError
from tessera.forking import tell_in_child
from tessera.internal_errors import boundary
from tessera.lang.calls import parameters
from tessera.lang.calls.disk_cache import VariantStore
from tessera.lang.calls.parameters import Leaf
from tessera.lang.calls.variants import Family, ObservedSizes, Variant, sizes_for
from tessera.lang.jit import Jitted, device_of, interpreted, log_fallback, refuse_fallback
from tessera.lang.tracing.values import is_array
from tessera.metatracing.clients.function_programs import FunctionProgram, guards_of, tensors_of
from tessera.metatracing.clients.recipes import ProgramShipment, Recipe
from tessera.metatracing.clients.shipping import NotShippable, pack
from tessera.runtime.cache import store as cache
from tessera.runtime.cache.build import build
from tessera.runtime.device.device import Device
from tessera.runtime.tensor.creation import asarray
from tessera.runtime.tensor.tensor import Tensor
from tessera.tiers.client import Call, Choice, Compiled, TierLevel, facts_of
from tessera.tiers.records import ExecutionTier
from tessera.tile.calls.settings import Settings, settings, settings_at, settings_on, target_of
from tessera.tile.language.schedule import Schedule

if TYPE_CHECKING:
    from tessera.programs import Program

_INTERPRETED_SIZE = 1 << 16
"""Elements of all arrays up to which the interpreter has a result before a compiler has."""
_RANKS = 3
_MOST_FAMILIES = 256
_LARGEST_HINT = 4096


class FunctionContext(NamedTuple):
    """The data to compile for a call, besides its values."""

    chosen: Settings | None
    """The settings around the call."""
    settings: Settings | None
    """The settings on the device of its arrays."""
    device: Device
    epoch: Epoch
    family: tuple[Any, ...]


@dataclass(eq=False)
class Epoch:
    """The time in which captured values of a function stay the same, and its traces from that time."""

    families: dict[tuple[Any, ...], Family] = field(default_factory=dict[tuple[Any, ...], Family])
    checks: list[Callable[[], bool]] = field(default_factory=list[Callable[[], bool]])

    def holds(self) -> bool:
        try:
            return all(check() for check in self.checks)
        except (NameError, ValueError):  # a captured name that is gone
            return False


class ProgramClient:
    """A jitted function for arguments of one structure, with these leaves and static values."""

    takes_tensors = True
    token = staticmethod(settings)

    def __init__(self, jitted: Jitted, call: parameters.Call) -> None:
        self.jitted = jitted
        self.name = jitted.name
        self.leaves = call.leaves
        self.paths = _names(call.leaves)
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        self.signature = inspect.Signature([inspect.Parameter(path, kind) for path in self.paths])
        self._key = call.key
        self._rebuild = call.rebuild
        self._epoch = Epoch()
        self._lock = threading.RLock()
        self._stores: WeakKeyDictionary[Variant, VariantStore] = WeakKeyDictionary()
        """The stores of variants that are not kept yet."""
        self._digests: WeakKeyDictionary[Variant, str] = WeakKeyDictionary()
        tell_in_child(self)

    def forked(self) -> None:
        """In the child of a fork: the thread that held the lock is not there."""
        self._lock = threading.RLock()

    # Calls

    def call(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Call | None:
        values = self._values(args)
        if values is None:
            return None
        chosen = settings()
        traced = self._as_traced(values)
        device = device_of(self.name, traced)
        here = None if chosen is None else settings_on(device, chosen)
        with self._lock:
            if not self._epoch.holds():
                for family in self._epoch.families:
                    self.jitted.families.pop(family, None)
                self._epoch = Epoch()
            epoch = self._epoch
        family = (device, chosen, *traced.key)
        return Call(values, (here, family, epoch), FunctionContext(chosen, here, device, epoch, family))

    def _values(self, args: Sequence[Any]) -> tuple[Any, ...] | None:
        """Leaves as this structure has them; None where they are of another."""
        if len(args) != len(self.leaves):
            return None
        values: list[Any] = []
        for leaf, value in zip(self.leaves, args, strict=True):
            if leaf.number is not None:
                if value.__class__ is not leaf.number:
                    return None
                values.append(value)
            elif is_array(value):
                values.append(asarray(value))
            else:
                return None
        return tuple(values)

    def _as_traced(self, values: Sequence[Any]) -> parameters.Call:
        # Ranks and types of arrays are not part of a structure: those of the call replace those of the first.
        arrays = iter([(value.ndim, value.dtype) for value in values if isinstance(value, Tensor)])
        key = tuple(next(arrays) if isinstance(part, tuple) else part for part in self._key)
        return parameters.Call(tensors_of(values), self.leaves, key, self._rebuild)

    def call_untiered(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Leaves of another structure: all of it is looked at anew."""
        given, named = self._rebuild(args)
        return self.jitted.in_tiers(*given, **named)

    def static_values(self, call: Call) -> Sequence[Any]:
        return ()

    def unchanged(self, call: Call) -> Callable[[], bool]:
        return self._variant(call).unchanged or (lambda: True)

    # Traces

    def _variant(self, call: Call) -> Variant:
        """The function traced for such calls, its lengths open."""
        context: FunctionContext = call.context
        with self._lock:
            family = context.epoch.families.get(context.family)
            if family is None:
                if len(context.epoch.families) >= _MOST_FAMILIES:
                    for known in context.epoch.families:
                        self.jitted.families.pop(known, None)
                    context.epoch.families.clear()
                family = Family(context.device, ObservedSizes(is_open=True))
                context.epoch.families[context.family] = family
                self.jitted.families[context.family] = family
            traced_call = self._as_traced(call.values)
            family.seen.add(traced_call.values)
            for variant in family.variants:
                if sizes_for(variant.traced, traced_call.values) is not None:
                    return variant
            store = self.jitted.variant_store(traced_call, context.device, context.chosen, f"{self.name}, open")
            variant = self.jitted.new_variant(traced_call, family, lambda traced: (interpreted(traced), None), store)
            if variant.unchanged is not None:
                context.epoch.checks.append(variant.unchanged)
            self._digests[variant] = _digest(variant, store)
            if store is not None and not variant.found:
                self._stores[variant] = store
            return variant

    def _shelve(self, variant: Variant, program: Program, recipe: Recipe) -> None:
        """Leaves a trace for other processes, with a program that serves all that it serves."""
        store = None if recipe.guarded else self._stores.pop(variant, None)
        if store is not None:
            store.keep(variant.traced, program)

    # Programs

    def compiles(self, call: Call) -> bool:
        return call.context.settings is not None

    def starts_quickly(self, call: Call) -> bool:
        """True on the CPU. For a GPU most of the time is spent at any level of optimization."""
        here: Settings | None = call.context.settings
        return here is not None and here.compiler.compiles_quickly

    def compile(self, call: Call, level: TierLevel) -> Compiled:
        variant, here = self._variant(call), call.context.settings
        if here is None or (level.quick and _elements(call) <= _INTERPRETED_SIZE):
            return self._made(variant, interpreted(variant.traced), call, level, None)
        recipe = self._recipe(variant, call, level)
        if level.quick:
            here = settings_at(0, here)
        elif (found := self.find(call, level)) is not None:
            return found
        try:
            program = recipe.program(variant.traced.module, here, str(call.context.device))
            made = self._made(variant, program, call, level, recipe)
            with boundary(self.name, "binding", lambda: program.codes.graph_text):
                made.bind(call)  # machine code is made for arrays
        except CompileError as error:
            if level.tier is not ExecutionTier.TIER1_INTERPRETER or call.context.chosen.demanded:
                raise
            refuse_fallback(self.name, error)
            log_fallback(self.name, error)
            variant.fallback = error.message
            return self._made(variant, interpreted(variant.traced), call, level, None)
        if not level.quick:
            recipe.keep(program)
            variant.program = program
            self._shelve(variant, program, recipe)
        return made

    def find(self, call: Call, level: TierLevel) -> Compiled | None:
        here: Settings | None = call.context.settings
        if here is None or level.quick:
            return None
        variant = self._variant(call)
        recipe = self._recipe(variant, call, level)
        program = recipe.find(here, call.context.device)
        if program is None:
            return None
        made = self._made(variant, program, call, level, recipe)
        made.bind(call)  # not in the call that is to use it first
        variant.program = program
        self._shelve(variant, program, recipe)
        return made

    def _made(
        self, variant: Variant, program: Program, call: Call, level: TierLevel, recipe: Recipe | None
    ) -> FunctionProgram:
        facts = () if recipe is None else recipe.guarded
        guards = guards_of(variant.traced, self.paths, facts, facts_of(self.paths, call.described))
        fixed = () if recipe is None else recipe.numbers
        graph = level.tier is ExecutionTier.TIER3_SPECIALIZED
        return FunctionProgram(variant.traced, program, guards, dict(fixed), call.context.device, graph=graph)

    def _recipe(self, variant: Variant, call: Call, level: TierLevel) -> Recipe:
        """The recipe of a level, for such a call."""
        traced, facts = variant.traced, facts_of(self.paths, call.described)
        sizes = sizes_for(traced, tensors_of(call.values))
        assert sizes is not None
        is_guided = level.tier is not ExecutionTier.TIER1_INTERPRETER
        hints = tuple(f"{symbol}={_about(number)}" for symbol, number in sorted(sizes.items())) if is_guided else ()
        rank = level.schedule.rank if isinstance(level.schedule, Choice) else 0
        fast = self.jitted.is_fast(call.context.chosen)
        digest, types = self._digests[variant], traced.types
        return Recipe.of(digest, types, self.paths, facts, level.assumed, hints, rank, fast, is_guided)

    def request(self, call: Call, levels: Sequence[TierLevel]) -> bytes | None:
        if build() is None or not levels:
            return None
        variant = self._variant(call)
        recipes = [self._recipe(variant, call, level) for level in levels]
        hidden = [one.meta for one in variant.traced.hidden]
        try:
            return pack(ProgramShipment.of(variant.traced.module, recipes, call, hidden))
        except NotShippable:
            return None

    def schedules(self, call: Call) -> Sequence[Schedule | None]:
        """The best blocks by the model, then the second best and the third."""
        return [None, *(Choice(rank=rank) for rank in range(1, _RANKS))]

    def knows_schedules(self, call: Call) -> bool:
        return True

    def identity(self, call: Call) -> str | None:
        here, compiler = call.context.settings, build()
        if here is None or compiler is None:
            return None
        return cache.key_of("tiers of a function", compiler, target_of(here), self._digests[self._variant(call)])


def _names(leaves: Sequence[Leaf]) -> tuple[str, ...]:
    """Names for leaves that can be written in code and in facts: `params['w']` is params_w."""
    found: list[str] = []
    for leaf in leaves:
        name = re.sub(r"\W+", "_", leaf.name).strip("_") or "argument"
        while name in found or not name.isidentifier():
            name = f"{name}_{len(found)}" if name.isidentifier() else f"argument_{name}"
        found.append(name)
    return tuple(found)


def _about(number: int) -> int:
    """A power of two that is not less, for a hint: sizes that differ a little have the same blocks."""
    return min(_LARGEST_HINT, 1 << max(0, number - 1).bit_length())


def _digest(variant: Variant, store: VariantStore | None) -> str:
    """An identity of a trace that is the same in every process: its key in the cache and guards, else its text."""
    traced = variant.traced
    if store is not None:
        served = [(one.name, str(one.sizes), str(one.dtype), one.weak) for one in traced.types]
        identity = repr((store.key, served, sorted(map(str, traced.guards)), sorted(traced.least.items())))
    else:
        from tessera.ir import text

        identity = text.write(traced.module)
    return blake2b(identity.encode(), digest_size=16).hexdigest()


def _elements(call: Call) -> int:
    return sum(value.size for value in call.values if isinstance(value, Tensor))
