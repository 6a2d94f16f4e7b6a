"""Values from outside that a traced function depends on, and a quick check whether they are still the same.

All that its code can reach is compared (`tile/identity/dependencies`): by identity, in each call. Arrays found there
are arguments of the program, so that writing into one needs no new trace; replacing it by another does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import takewhile
from typing import Any

from tessera.tile.identity import dependency_check
from tessera.tile.identity.dependencies import MISSING, Dependencies, Held
from tessera.tile.identity.dependency_check import Check
from tessera.tile.identity.static_keys import are_same

Effects = dict[tuple[str, int, Any], int]
"""Changes that a function made while it was traced, by the kind of holder, the holder and the key; and how often."""

_OFTEN = 2
_NUMBERS = (int, float)
_KEYED = frozenset({"names", "module", "keys", "class"})


class TraceDependencies:
    """The values from outside that a function and its static values depend on, before and after a trace.

    A value that tracing itself changes is compared as it is afterwards: something that is made when it is first needed,
    say. One that each trace changes, such as a count, is an effect of the function and no dependency.
    """

    def __init__(self, function: Callable[..., Any], *static: Any) -> None:
        self._roots = (function, *static)
        self._before = Dependencies(self._roots)

    def settled(
        self, effects: Effects | None = None, lifted: Iterable[Any] = (), more: Iterable[Check] = ()
    ) -> tuple[Check, Mapping[str, str]]:
        """After tracing: a quick look whether all is as it was; and what is not looked at.

        `lifted` are the arrays that are arguments now, `effects` what earlier traces changed; it is added to.
        """
        ids = {id(one) for one in lifted}
        after = self._before if effects is None and not ids else Dependencies(self._roots, ids)
        held = after.held() if effects is None else list(self._settled(after, effects))
        held += [Held("asked", "a copied array", _asking(check), (), (True,)) for check in more]
        return dependency_check.DependencyCheck(held, after.chains).check, after.unwatched

    def _settled(self, after: Dependencies, effects: Effects) -> Iterable[Held]:
        before = {(one.kind, id(one.holder)): one for one in self._before.held()}
        for one in after.held():
            earlier = before.get((one.kind, id(one.holder)))
            if earlier is None or (earlier.keys == one.keys and _all_same(earlier.values, one.values)):
                yield one
            elif one.kind in ("function", "cell", *_KEYED) and earlier.keys == one.keys:
                yield from self._changed_values(earlier, one, effects, after.stores)
            else:
                yield from _changed_contents(earlier, one, effects)

    def _changed_values(self, earlier: Held, one: Held, effects: Effects, stores: Collection[str]) -> Iterable[Held]:
        keys: list[Any] = []
        values: list[Any] = []
        names = one.keys or (one.label,)
        for name, was, now in zip(names, earlier.values, one.values, strict=False):
            is_changed = not are_same(was, now)
            if is_changed and one.kind in ("names", "cell") and name not in stores:
                now = was  # noqa: PLW2901  (another thread was at it: what was traced may be either)
            elif is_changed and _is_only_done(effects, one, name, was, now):
                continue
            keys.append(name)
            values.append(now)
        if keys:
            extra = one.values[len(names) :] if one.kind in ("class", "function") else ()
            yield one._replace(keys=tuple(keys) if one.keys else (), values=(*values, *extra))


def _changed_contents(earlier: Held, one: Held, effects: Effects) -> Iterable[Held]:
    """The parts to compare of a container that tracing has changed: those that were added."""
    if one.kind in ("attributes", "dict"):
        was = dict(zip(earlier.keys, earlier.values, strict=True))
        kept: dict[Any, Any] = {}
        for key, now in zip(one.keys, one.values, strict=True):
            before = was.get(key, MISSING)
            if are_same(before, now) or not _is_only_done(effects, one, key, before, now):
                kept[key] = now
        if kept:
            yield Held("keys", one.label, one.holder, tuple(kept), tuple(kept.values()))
    elif one.kind == "list":
        count = sum(1 for _ in takewhile(bool, map(are_same, earlier.values, one.values)))
        if count:
            yield Held("start", one.label, one.holder, (), one.values[:count])
    elif not _is_only_done(effects, one, None, earlier.values, one.values):
        yield one


def _is_only_done(effects: Effects, one: Held, key: Any, was: Any, now: Any) -> bool:
    """Whether a change is only what the function does: it counts something, or does so in each trace."""
    effect = (one.kind, id(one.holder), key)
    effects[effect] = effects.get(effect, 0) + 1
    return effects[effect] >= _OFTEN or (isinstance(was, _NUMBERS) and isinstance(now, _NUMBERS))


def _all_same(some: Iterable[Any], others: Iterable[Any]) -> bool:
    some, others = tuple(some), tuple(others)
    return len(some) == len(others) and all(map(are_same, some, others))


def _asking(check: Check) -> Callable[[], tuple[bool]]:
    return lambda: (check(),)
