"""Calls of a client that runs in tiers: a function written for its parameters, which finds the program to run.

It compares metas with those of the entries used last, then looks into a dictionary, and otherwise goes the long way.
Metas are interned, so that guards about sizes and strides are comparisons of objects; only guards about numbers look at
values. Every so many calls one is timed and recorded.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from tessera.errors import TesseraError
from tessera.runtime.tensor.tensor import Tensor
from tessera.tiers.client import Call, Client
from tessera.tiers.logs import log
from tessera.tiers.records import ExecutionTier
from tessera.tiers.sites.entries import Outcome, SiteEntry, Values
from tessera.tiers.sites.site import SiteRuntime
from tessera.tiers.sites.specialization_site import FAULTS, SpecializationSite
from tessera.tile.call_code import INLINE, CallCode, as_given, compared_meta_text, listed, meta_text, static_text
from tessera.tile.identity.static_keys import AS_THEY_ARE, exact

_MOST_ENTRIES = 1024
_MOST_SITES = 64


class Tiered:
    """A client under a runtime, called as the client is; `call_with_tier` also returns the tier of the call."""

    # Each has functions of its own for its calls, written for its parameters.
    __slots__ = ("__call__", "__dict__", "__weakref__", "call_with_tier")
    __call__: Callable[..., Any]
    call_with_tier: Callable[..., Outcome]

    def __init__(self, runtime: SiteRuntime, client: Client) -> None:
        self.runtime = runtime
        self.client = client
        self.sites: dict[tuple[Any, ...], SpecializationSite] = {}
        self.entries: dict[tuple[Any, ...], SiteEntry] = {}
        self._lock = threading.RLock()
        parameters = client.signature.parameters.values()
        self._given = [one for one in parameters if one.name in client.paths]
        self._static = [one for one in parameters if one.name not in client.paths]
        self._arrays: tuple[bool, ...] | None = None  # which arguments are; unknown before the first call
        self.__call__ = lambda *args, **kwargs: self.slow_path(args, kwargs)[0]
        self.call_with_tier = lambda *args, **kwargs: self.slow_path(args, kwargs)

    def forked(self) -> None:
        """In the child of a fork: the threads that held the locks are not there, nor are compiling processes."""
        self._lock = threading.RLock()
        for site in self.sites.values():
            site.forked()

    def slow_path(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Outcome:
        """Makes any call; the next of its kind takes the fast path."""
        call = self.client.call(args, kwargs)
        if call is None:
            return self.client.call_untiered(args, kwargs), ExecutionTier.TIER1_INTERPRETER
        return self._run(call)

    def retry(self, values: Values, call: Call) -> Outcome:
        """Makes a call again that its entry could not make."""
        return self._run(Call(values, call.fixed, call.context))

    def _run(self, call: Call) -> Outcome:
        key, came = self._key(call), self.runtime.clock()
        entry = self.entries.get(key)
        if entry is None or entry.is_stale or not _holds(entry.unchanged):
            site = self._site(call)
            entry = site.entry_for(call)
            self._remember(key, entry, call)
            site.lookup_time = self.runtime.clock() - came
        values = call.values
        entry = entry.for_numbers([values[index] for index in entry.site.numbers])
        return entry.site.sampled(entry, values, entry.site.given(values))

    def _site(self, call: Call) -> SpecializationSite:
        # A site's lock is taken before this one: sites that are dropped are closed after this one is released.
        left: list[SpecializationSite] = []
        with self._lock:
            site = self.sites.get(call.fixed)
            if site is None:
                if len(self.sites) >= _MOST_SITES:
                    left.append(self.sites.pop(next(iter(self.sites))))
                for fixed, old in list(self.sites.items()):
                    if not _holds(old.unchanged):
                        log("tiers", f"{self.client.name}: what it captured has changed, its programs are left")
                        self.runtime.counts.add("invalidations", site=self.client.name)
                        left.append(self.sites.pop(fixed))
                site = self.sites[call.fixed] = SpecializationSite(self.runtime, self, call)
        for old in left:
            old.close()
        return site

    def close(self) -> None:
        """Lets go of all programs."""
        with self._lock:
            left = list(self.sites.values())
            self.sites.clear()
        for site in left:
            site.close()

    def _key(self, call: Call) -> tuple[Any, ...]:
        parts: list[Any] = [self.client.token()]
        parts += [value.meta if isinstance(value, Tensor) else value.__class__ for value in call.values]
        for value in self.client.static_values(call):
            parts += [value.__class__, value if value.__class__ in AS_THEY_ARE else exact(value)]
        return tuple(parts)

    def _remember(self, key: tuple[Any, ...], entry: SiteEntry, call: Call) -> None:
        crowded: list[SpecializationSite] = []
        with self._lock:
            if len(self.entries) >= _MOST_ENTRIES:
                self.entries.clear()
                crowded = list(self.sites.values())
        for site in crowded:
            site.forget()
        with self._lock:
            self.entries[key] = entry
            arrays = tuple([isinstance(value, Tensor) for value in call.values])
            if self._arrays is None:
                self._arrays = arrays
            if len(self.entries) <= INLINE:
                self._write()

    def forget_stale(self, gone: Sequence[SiteEntry], renewed: int = 0) -> None:
        """Drops entries that sites have given up, or replaces them with new ones: so no call has to look for them."""
        with self._lock:
            stale = [(key, entry) for key, entry in self.entries.items() if entry.is_stale]
            found = {id(entry) for entry in gone}
            for key, entry in stale:
                if renewed and id(entry) in found and entry.hotness.total:
                    renewed -= 1
                    with suppress(TesseraError, MemoryError):  # then the next call learns of it
                        self.entries[key] = new = entry.site.entry_for(entry.call, entry.call)
                        new.follow(entry)
                        continue
                self.entries.pop(key, None)
            self._write()

    # The fast path

    def _write(self) -> None:
        if self._arrays is not None and any(self._arrays):
            self.__call__, self.call_with_tier = self._written(False), self._written(True)

    def _written(self, with_tier: bool) -> Callable[..., Any]:
        assert self._arrays is not None
        client, names = self.client, [one.name for one in self._given]
        code = CallCode(client.name, client.signature, __name__, token=client.token, entries=self.entries)
        code.see(faults=FAULTS, recover=_recover)
        mark, arrays = code.mark, dict(zip(names, self._arrays, strict=True))
        parts = [meta_text(name) if arrays[name] else f"{name}.__class__" for name in names]
        compared = [compared_meta_text(name) if arrays[name] else f"{name}.__class__" for name in names]
        for one in self._static:
            parts += [f"{one.name}.__class__", static_text(one.name, mark)]
            compared += [f"{one.name}.__class__", one.name]
        first = list(self.entries.items())[:INLINE]
        code.see(**{f"entry{number}": entry for number, (_, entry) in enumerate(first)})
        taken = "" if client.takes_tensors else ".geometry"
        given = [f"{name}{taken}" if arrays[name] else name for name in names]
        run = f"{mark}entry.run({listed(given)})"
        texts = {
            "mark": mark,
            "choice": code.choice(
                [key for key, _ in first],
                [f"{mark}now", *compared],
                f"{mark}entry = {mark}entry{{}}",
                f"{mark}entry = {mark}entries[{listed([f'{mark}now', *parts])}]",
            ),
            "numbers": listed([name for name in names if not arrays[name]]),
            "values": listed(names),
            "given": listed(given),
            "result": f"({run}, {mark}entry.tier)" if with_tier else run,
            "only": "" if with_tier else "[0]",
        }
        body = code.attempt(_LOOK.format(**texts), _RUN.format(**texts))
        return code.made(body, self._otherwise if with_tier else lambda *parts: self._otherwise(*parts)[0])

    def _otherwise(
        self, given: Sequence[Any], extra: Sequence[Any], named: Mapping[str, Any], more: Mapping[str, Any]
    ) -> Outcome:
        return self.slow_path(*as_given([one.name for one in self._given], given, extra, named, more))


_LOOK = """{mark}now = {mark}token()
{choice}
if {mark}entry.holds is not None and not {mark}entry.holds({numbers}):
    {mark}entry = {mark}entry.for_numbers(({numbers}))
{mark}good = not {mark}extra and not {mark}more and {mark}entry.unchanged()"""
_RUN = """{mark}entry.left = {mark}left = {mark}entry.left - 1
if {mark}left < 0:
    return {mark}entry.site.sampled({mark}entry, ({values}), ({given})){only}
try:
    return {result}
except {mark}faults as {mark}fault:
    return {mark}recover({mark}entry, {mark}fault, ({values})){only}"""


def _recover(entry: SiteEntry, fault: Exception, values: Values) -> Outcome:
    entry.left += 1  # another entry makes this call, and counts it
    return entry.site.recover(entry, None, fault, values)


def _holds(unchanged: Callable[[], bool]) -> bool:
    try:
        return unchanged()
    except (NameError, ValueError):  # a captured name that is gone
        return False


def is_traceable(signature: inspect.Signature) -> bool:
    """Whether all arguments have names of their own."""
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return not any(one.kind in variable for one in signature.parameters.values())
