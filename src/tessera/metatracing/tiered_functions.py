"""Calls of jitted functions that run in tiers: from Python's arguments to the tiers of their structure."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tessera.errors import TesseraError
from tessera.forking import tell_in_child
from tessera.lang.calls.parameters import Call
from tessera.lang.calls.structures import Structure
from tessera.lang.jit import Jitted
from tessera.lang.tracing.values import current_or_none
from tessera.metatracing.clients.functions import ProgramClient
from tessera.metatracing.runtime import MetaTracingRuntime, shared_runtime
from tessera.tiers.tiered import Tiered
from tessera.tile.call_code import CallCode, as_given, listed

_MOST_STRUCTURES = 256


def tiers_of(jitted: Jitted, wanted: Any) -> TieredFunction:
    """A function in the tiers of a runtime, or of this process's own where it is `auto`."""
    runtime = shared_runtime() if wanted == "auto" else wanted
    if not isinstance(runtime, MetaTracingRuntime):
        raise TesseraError(
            f"{jitted.name}: tiers are 'auto', 'off' or a MetaTracingRuntime, got {type(runtime).__name__}",
            hint="make one: tessera.metatracing.MetaTracingRuntime()",
        )
    return TieredFunction(jitted, runtime)


class TieredFunction:
    """A jitted function under a runtime: one `Tiered` for each structure of its arguments."""

    def __init__(self, jitted: Jitted, runtime: MetaTracingRuntime) -> None:
        self.jitted, self.runtime = jitted, runtime
        self.structures: dict[tuple[object, ...], Tiered] = {}
        self._lock = threading.RLock()
        self._quick: _Quick | None = None
        tell_in_child(self)

    def forked(self) -> None:
        """In the child of a fork: the thread that held the lock is not there."""
        self._lock = threading.RLock()

    def call(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Makes any call; the next of its structure takes the fast path."""
        jitted = self.jitted
        arguments = jitted.parameters.bind(args, kwargs)
        call = jitted.parameters.call(arguments)
        tiered = self._tiered(call)
        leaves = [
            value if leaf.number is None else value.item() for leaf, value in zip(call.leaves, call.values, strict=True)
        ]
        result = tiered(*leaves)
        if jitted.donated:
            for leaf, value in zip(call.leaves, call.values, strict=True):
                if leaf.name.split("[")[0] in jitted.donated:
                    value.give_away()
        else:
            self._remember(arguments, tiered)
        return result

    def _tiered(self, call: Call) -> Tiered:
        # Ranks and types of arrays are for the tiers to tell apart.
        key = tuple(None if isinstance(part, tuple) else part for part in call.key)
        with self._lock:
            found = self.structures.get(key)
            if found is None:
                if len(self.structures) >= _MOST_STRUCTURES:
                    self.structures.pop(next(iter(self.structures))).close()
                    self._quick = None
                found = self.structures[key] = self.runtime.lent(ProgramClient(self.jitted, call))
            return found

    def _remember(self, arguments: dict[str, Any], tiered: Tiered) -> None:
        """Puts tiers where generated code finds them; the code is written for the first structure that comes."""
        with self._lock:
            if self._quick is None:
                structure = Structure(self.jitted.parameters, arguments)
                if not structure.is_regular:
                    return
                self._quick = _Quick(self.jitted, structure, self.jitted.in_tiers)
                self.jitted.__call__ = self._quick.call
            self._quick.add(arguments, tiered)

    def sites(self) -> list[Any]:
        with self._lock:
            return [site for tiered in self.structures.values() for site in list(tiered.sites.values())]

    def explain(self) -> Iterator[str]:
        for site in self.sites():
            yield from site.explain()


class _Quick:
    """Generated code for one structure of arguments: it takes them apart and finds their tiers by static values."""

    def __init__(self, jitted: Jitted, structure: Structure, slow_path: Callable[..., Any]) -> None:
        self.jitted, self.structure, self.slow_path = jitted, structure, slow_path
        self.known: dict[tuple[Any, ...], Tiered] = {}
        self.call = self._written()

    def add(self, arguments: Mapping[str, Any], tiered: Tiered) -> None:
        """Notes the tiers of arguments, if they have this structure."""
        taken = self.structure.taken(**arguments) if self.structure.fits(arguments) else None
        if taken is None:
            return
        if len(self.known) >= _MOST_STRUCTURES:
            self.known.clear()
        _, kinds, _ = taken
        self.known[kinds] = tiered

    def _written(self) -> Callable[..., Any]:
        structure, jitted = self.structure, self.jitted
        code = CallCode(jitted.name, jitted.parameters.signature, __name__, known=self.known, tracing=current_or_none)
        mark, tests = code.mark, "".join(f" and {test}" for test in structure.tests)
        look = (
            f"{mark}tiered = {mark}known[({listed(structure.kinds)})]\n"
            f"{mark}good = {mark}tracing() is None and not {mark}extra and not {mark}more{tests}"
        )
        run = f"return {mark}tiered({', '.join(structure.order)})"
        return code.made(code.attempt(look, run), self._otherwise)

    def _otherwise(self, given: tuple[Any, ...], extra: tuple[Any, ...], named: dict[str, Any], more: Any) -> Any:
        args, kwargs = as_given(self.structure.positional, given, extra, named, more)
        return self.slow_path(*args, **kwargs)
