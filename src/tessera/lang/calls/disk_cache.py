"""The disk cache of jitted functions: a process finds variants of earlier ones, without tracing and compiling.

Variants of a function lie under a key of all that is known before it is traced: its fingerprint with everything that it
sees from outside, the kinds and structure of its arguments, static values, the target and the compiler. The entry says
for which sizes each variant serves, where its program is, and which captured arrays are arguments of it. What has no
fingerprint is not kept: functions that capture what `object_fingerprint` cannot tell, that change what they capture
while they are traced, that read elements of captured tensors, make arrays of their own, or use states, or whose
arguments or results are of users' classes. `explain()` says why.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, cast

from tessera import knobs
from tessera.dtypes.types import DType
from tessera.lang.calls.object_fingerprint import ObjectFingerprints
from tessera.lang.calls.parameters import Call, Parameters, Static
from tessera.lang.calls.variants import sizes_for
from tessera.lang.tracing.current_machine import current_machine
from tessera.lang.tracing.functions import ArgumentType, Outcome, TracedFunction
from tessera.lang.tracing.index_ranges import IndexRange
from tessera.lang.tracing.sizes import SizeGuard
from tessera.programs.host import decode, encode
from tessera.programs.program import Program
from tessera.programs.size_classes import SizeClasses
from tessera.programs.store import find, keep
from tessera.runtime.cache import store as cache
from tessera.runtime.cache.build import build
from tessera.runtime.device.device import Device
from tessera.runtime.tensor.creation import asarray
from tessera.runtime.tensor.pytree import tree_flatten, tree_unflatten
from tessera.runtime.tensor.tensor import Tensor
from tessera.shapes.expr import dim
from tessera.tile.calls.settings import Settings, settings_on, target_of
from tessera.tile.identity.fingerprint import NoFingerprint

_MOST_VARIANTS = 32
_PLAIN = (type(None), bool, int, float, str)


class VariantStore:
    """The variants of one family of calls on the disk."""

    def __init__(
        self, key: str, chosen: Settings, device: Device, identity: str, values: tuple[Any, ...], arrays: list[Any]
    ) -> None:
        self.key = key
        self.chosen = chosen
        self.device = device
        self._identity = identity
        self._values = values
        self._arrays = arrays
        """The arrays that the function captures, in the order of its fingerprint."""

    @staticmethod
    def of(
        name: str,
        function: Callable[..., Any],
        parameters: Parameters,
        call: Call,
        device: Device,
        chosen: Settings | None,
        fast_math: bool,
    ) -> VariantStore | str:
        """The store of a call; a reason where there is none."""
        compiler = None if chosen is None or not device.has_programs else build()
        kinds = _kinds(call)
        if chosen is None or compiler is None:
            return "there is no compiler, or no cache, for it"
        if knobs.looks_at_stages():
            return "its stages are dumped or overridden in this process"
        if kinds is None:
            return "its arguments are of a user's class"
        values = function, tuple([part.value for part in call.key if isinstance(part, Static)])
        try:
            identity, arrays = ObjectFingerprints.told(*values)
        except NoFingerprint as reason:
            return f"it depends on {reason}"
        notes = tuple(sorted((name, str(note)) for name, note in getattr(function, "__annotations__", {}).items()))
        options = tuple(sorted(parameters.static)), tuple(sorted(parameters.numbered)), fast_math
        target = settings_on(device, chosen)
        key = cache.key_of("jit", compiler, target_of(target), name, identity, notes, options, kinds)
        return VariantStore(key, target, device, cache.key_of(identity), values, arrays)

    def find(self, call: Call) -> tuple[TracedFunction, Program] | None:
        """A variant that serves a call, and its program."""
        for found in self._entries():
            try:
                traced, key = _decoded(found, call, self._arrays)
                if sizes_for(traced, call.values) is None:
                    continue
                program = find(key, self.chosen, self.device)
            except cache.UNREADABLE as error:
                _log(f"a variant of a function is not read: {type(error).__name__}: {error}")
                continue
            if program is not None:
                program.world = current_machine
                program.size_classes = SizeClasses(program, self.chosen, _for_sizes)
                traced.source = program.codes.graph_text
                return traced, program
        return None

    def keep(self, traced: TracedFunction, program: Program) -> str | None:
        """Keeps a variant; gives the reason where it cannot be."""
        key = cache.key_of(self.key, program.codes.graph_text)
        encoded = _encoded(traced, key, self._arrays)
        if isinstance(encoded, str) or program.settings is None:
            return encoded if isinstance(encoded, str) else "it has no machine code"
        try:
            if cache.key_of(ObjectFingerprints.told(*self._values)[0]) != self._identity:
                return "tracing it changes something that it captures"
        except NoFingerprint as reason:
            return f"it depends on {reason} when it was traced"
        keep(key, program)
        entries = [one for one in self._entries() if one != encoded][-_MOST_VARIANTS + 1 :]
        cache.shared().put(self.key, json.dumps([*entries, encoded]).encode())
        return None

    def _entries(self) -> list[Any]:
        data = cache.shared().get(self.key)
        try:
            found = [] if data is None else list[Any](json.loads(data))
        except cache.UNREADABLE as error:
            _log(f"the variants of a function are not read: {error}")
            return []
        return found


def _for_sizes(general: Program, hints: tuple[str, ...], most: tuple[str, ...]) -> Program:
    from tessera.programs.compile import compile_for_sizes

    return compile_for_sizes(general, hints, most)


def _kinds(call: Call) -> tuple[object, ...] | None:
    """The kinds and structure of arguments as parts of a key."""
    parts: list[object] = []
    for part in call.key:
        if isinstance(part, Static):
            parts.append(("static", type(part.value).__qualname__))
        elif isinstance(part, str):
            parts.append(part)
        elif isinstance(part, type):
            parts.append(("number", part.__name__))
        elif isinstance(part, tuple):
            rank, dtype = cast("tuple[int, DType]", part)
            parts.append((rank, str(dtype)))
        else:
            structure: Any = part
            if _tree(tree_unflatten(structure, [0] * structure.num_leaves)) is None:
                return None
            parts.append(("tree", str(structure)))
    return tuple(parts)


def _tree(example: Any) -> Any:
    """Containers of Python's own as JSON has them, leaves as numbers; None where there is something else."""
    kind = example.__class__
    if example is None or kind is int:
        return [example]
    if kind in (list, tuple):
        parts = [_tree(one) for one in example]
        return None if None in parts else [kind.__name__, parts]
    if kind is dict:
        parts = [[key, _tree(one)] for key, one in example.items()]
        if any(part is None or not isinstance(key, str | int) or isinstance(key, bool) for key, part in parts):
            return None
        return ["dict", parts]
    return None


def _example(found: Any) -> Any:
    if len(found) == 1:
        return found[0]
    kind, parts = found
    if kind == "dict":
        return {key: _example(part) for key, part in parts}
    made = [_example(part) for part in parts]
    return tuple(made) if kind == "tuple" else made


def _encoded(traced: TracedFunction, key: str, arrays: Sequence[Any]) -> dict[str, Any] | str:
    """A variant as JSON has it; the reason where it cannot be."""
    tree = _tree(tree_unflatten(traced.structure, range(len(traced.outcomes))))
    constants = [one.constant for one in traced.outcomes]
    has_state = any(effect.startswith("state(") for effect in traced.effects)
    if tree is None or any(one.__class__ not in _PLAIN for one in constants):
        return "its results are of a user's class"
    if has_state:
        return "it uses states"
    if traced.copied:
        return "Python reads elements of an array that it captures, or copies them to a device"
    hidden = [next((at for at, one in enumerate(arrays) if one is source), None) for source in traced.lifted]
    if None in hidden or len(hidden) != len(traced.hidden):
        return "it makes an array while it is traced, or finds one where nothing tells it"
    return {
        "program": key,
        "types": [[one.name, encode(one.sizes), encode(one.dtype), one.weak, encode(one.span)] for one in traced.types],
        "outcomes": [
            [one.result, None if one.size is None else str(one.size), one.constant] for one in traced.outcomes
        ],
        "tree": tree,
        "guards": [[str(one.value), one.question, one.number, one.answer, encode(one.span)] for one in traced.guards],
        "least": {symbol: list(interval) for symbol, interval in traced.least.items()},
        "effects": list(traced.effects),
        "places": [one.encoded() for one in traced.index_ranges],
        "hidden": hidden,
    }


def _decoded(found: dict[str, Any], call: Call, arrays: Sequence[Any]) -> tuple[TracedFunction, str]:
    types = [
        ArgumentType(name, decode(sizes), decode(dtype), weak, decode(span))
        for name, sizes, dtype, weak, span in found["types"]
    ]
    if [one.name for one in types] != [leaf.name for leaf in call.leaves]:
        raise ValueError("its arguments are others")
    outcomes = [
        Outcome(key, None if size is None else dim(size), constant) for key, size, constant in found["outcomes"]
    ]
    guards = [
        SizeGuard(dim(value), question, number, answer, decode(span))
        for value, question, number, answer, span in found["guards"]
    ]
    _, structure = tree_flatten(_example(found["tree"]))
    least = {symbol: (low, high) for symbol, (low, high) in found["least"].items()}
    effects: Sequence[str] = found["effects"]
    sources = tuple(arrays[number] for number in found["hidden"])
    hidden = tuple(one if isinstance(one, Tensor) else asarray(one) for one in sources)
    traced = TracedFunction(
        "", "", tuple(types), hidden, tuple(outcomes), structure, tuple(guards), least, tuple(effects), (), ()
    )
    traced.lifted = sources
    traced.index_ranges = tuple(map(IndexRange.decoded, found["places"]))
    return traced, found["program"]


def _log(message: str) -> None:
    if "cache" in knobs.logs.value:
        import logging

        logging.getLogger("tessera.cache").warning(message)
