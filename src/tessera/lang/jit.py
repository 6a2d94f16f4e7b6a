"""`@jit`: a function over tensors, traced for the types it is called with, compiled once for many sizes, and run."""

from __future__ import annotations

import copy
import functools
import logging
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from threading import RLock
from time import perf_counter
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Self, overload

from tessera import knobs
from tessera.errors import CompileError, DeviceError, FallbackError, InternalError, TesseraError, caller_span, warn_once
from tessera.forking import tell_in_child
from tessera.internal_errors import FAULTS, boundary, fault, tell
from tessera.lang import explain
from tessera.lang.calls import watching
from tessera.lang.calls.disk_cache import VariantStore
from tessera.lang.calls.dispatch import MOST_ENTRIES, DispatchEntry, Finish, Quick, ResultIndex, Sibling, finishing
from tessera.lang.calls.inlining import inlined
from tessera.lang.calls.methods import Held, Method, Methods, alive
from tessera.lang.calls.narrowing import narrowed
from tessera.lang.calls.parameters import Call, Parameters, Static
from tessera.lang.calls.variants import Family, ObservedSizes, Reason, Variant, pattern_of, sizes_for
from tessera.lang.tiering import Tiers, tiers_of, wanted_tiers
from tessera.lang.tracing.current_machine import current_machine
from tessera.lang.tracing.functions import TracedFunction, trace_function
from tessera.lang.tracing.index_ranges import looking
from tessera.lang.tracing.shape_rules import TraceAgain, is_automatic
from tessera.lang.tracing.values import current_or_none
from tessera.runtime.device.device import Device, default_device
from tessera.runtime.device.garbage import collect_after
from tessera.runtime.tensor.pytree import tree_leaves
from tessera.runtime.tensor.tensor import Tensor
from tessera.shapes.expr import format_shape
from tessera.tile.calls.program_cache import in_the_interpreter
from tessera.tile.calls.settings import Settings, settings
from tessera.tile.identity.pickling import Made, Named, function_behind
from tessera.tracebacks import comes_from_outside, trimmed

if TYPE_CHECKING:
    from typing_extensions import ParamSpec, TypeVar
    from xdsl.dialects.builtin import ModuleOp

    from tessera.lang.checking import Checked
    from tessera.programs import BoundProgram, Program

    # Where none are named, they are any: `Jitted` is a jitted function of some parameters.
    P = ParamSpec("P", default=...)
    R = TypeVar("R", default=Any)
    Q = ParamSpec("Q")
else:
    from typing import ParamSpec, TypeVar

    P = ParamSpec("P")
    R = TypeVar("R")

_MOST_TRACES = 32  # of one function for one call, each with more sizes known to be equal
_MOST_FAMILIES = 512
_MOST_GRAPHS = 64  # of one function: each has an arena of its own
_MOST_STRUCTURES = 4  # of arguments that there is generated code for


class Jitted(Named, Generic[P, R]):
    """A function that is traced, compiled and kept. Call it like the function itself."""

    # Each has a function of its own for its calls, written for the structure of its arguments; see `dispatch`.
    __slots__ = ("__call__", "__dict__", "__weakref__")
    __call__: Callable[P, R]

    def __init__(
        self,
        function: Held,
        *,
        static_argnums: int | Iterable[int] = (),
        static_argnames: str | Iterable[str] = (),
        donate_argnums: int | Iterable[int] = (),
        fast_math: bool | None = None,
        graphs: bool = False,
        number_parameters: Iterable[str] | None = None,
        name: str | None = None,
        identity: Callable[..., Any] | None = None,
        tiers: Any = "off",
        careful: bool = False,
    ) -> None:
        functools.update_wrapper(self, alive(function))
        if alive(function) is not function:
            del self.__dict__["__wrapped__"]  # it is in the hands of those who have the object
        self._function = function
        self._identity = identity
        # Whether indices among the arguments are looked at before each call on the host.
        self.careful = careful
        self.name = name or getattr(function, "__name__", "function")
        self._options: dict[str, Any] = {
            "static_argnums": _several(static_argnums),
            "static_argnames": (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames),
            "number_parameters": _of_operator(function) if number_parameters is None else number_parameters,
        }
        self.parameters = Parameters(function, **self._options)
        self.fast_math = fast_math
        self.graphs = graphs
        self._recorded = 0
        self._donate_argnums = _several(donate_argnums)
        self.donated = self.parameters.names_of(self._donate_argnums)
        self.families: dict[tuple[object, ...], Family] = {}
        self.reasons: list[Reason] = []
        self._known: dict[tuple[object, ...], DispatchEntry] = {}
        self._kinds: dict[tuple[object, ...], tuple[object, ...]] = {}
        self.quicks: list[Quick] = []
        self._methods = Methods()
        self._effects: watching.Effects = {}
        self._lock = RLock()
        self.tiers = wanted_tiers(tiers)
        self._tiered: Tiers | None = None
        self.__call__ = self._slowly if self.tiers is None else self.in_tiers
        tell_in_child(self)

    def forked(self) -> None:
        """In the child of a fork: the thread that held the lock is not there."""
        self._lock = RLock()

    def __repr__(self) -> str:
        return f"<jit {self.name}>"

    @property
    def function(self) -> Callable[..., Any]:
        return alive(self._function)

    @property
    def identity(self) -> Callable[..., Any]:
        """The identity of the function in keys on the disk."""
        return self.function if self._identity is None else self._identity

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...
    @overload
    def __get__(self: Jitted[Concatenate[Any, Q], R], instance: object, owner: type | None = None) -> Jitted[Q, R]: ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """A method: of an object that is a pytree, which is an argument then; else of this very object."""
        if instance is None:
            return self
        known = self._methods.known(instance)
        if known is None:
            if tree_leaves(instance) != [instance]:
                return types.MethodType(self, instance)
            with self._lock:
                known = self._methods.of(self.function, instance, self._of_object)
        return Method(known, instance)

    def _of_object(self, method: Held) -> Jitted:
        options = self._given()
        for name in ("static_argnums", "donate_argnums"):  # the first parameter is given
            options[name] = [index - (index > 0) for index in options[name] if index != 0]
        return Jitted(method, **options)

    def _given(self) -> dict[str, Any]:
        """The options that it was made with."""
        return {
            **self._options,
            "donate_argnums": self._donate_argnums,
            "fast_math": self.fast_math,
            "graphs": self.graphs,
            "name": self.name,
            "tiers": self.tiers,
        }

    @property
    def static_options(self) -> dict[str, Any]:
        """Which of its arguments are static, as `jit` takes it."""
        return {name: self._options[name] for name in ("static_argnums", "static_argnames")}

    def as_made(self) -> Made:
        return _made_again, (self.function, self._given())

    def __deepcopy__(self, memo: dict[int, Any]) -> Jitted:
        """Of a method, that of the copied object."""
        if not isinstance(self.function, types.MethodType):
            return self
        return _made_again(copy.deepcopy(self.function, memo), self._given())

    # Calls

    @trimmed
    def in_tiers(self, /, *args: Any, **kwargs: Any) -> Any:
        """Any call, in tiers; their runtime may replace it by something quicker."""
        if current_or_none() is not None:
            return inlined(self.name, self.parameters, args, kwargs)
        if self._tiered is None:
            with self._lock:
                self._tiered = self._tiered or tiers_of(self, self.tiers)
        return self._tiered.call(args, kwargs)

    @trimmed
    def _slowly(self, /, *args: Any, **kwargs: Any) -> Any:
        """Any call; the next of its kind is quick."""
        if current_or_none() is not None:
            return inlined(self.name, self.parameters, args, kwargs)
        chosen = settings()
        arguments = self.parameters.bind(args, kwargs)
        call = self.parameters.call(arguments)
        kind = self._kinds.setdefault(call.key, call.key)  # the same object for all sizes
        key = (chosen, kind, *[value.meta for value in call.values])
        entry = self._known.get(key)
        if entry is None or not (entry.unchanged is None or entry.unchanged()):
            entry = self._entry(call, chosen)
            if len(self._known) >= MOST_ENTRIES:
                self._known.clear()
                self._kinds.clear()
            self._known[key] = entry
            self._remember(arguments, chosen, entry, self._sibling(call, chosen))
        results = entry.run(*call.values, *entry.hidden)
        return results if entry.finish is None else entry.finish(results)

    def _remember(
        self, arguments: dict[str, Any], chosen: Settings | None, entry: DispatchEntry, sibling: Sibling | None
    ) -> None:
        """Puts an entry where generated code finds it. Where that fails, calls are slow, which is told."""
        try:
            with boundary(self.name, "writing the code of calls"):
                self._write(arguments, chosen, entry, sibling)
        except InternalError as error:
            warn_once(f"calls of {self.name}", f"calls of {self.name} are slow: {error.message}; {error.hint}")

    def _write(
        self, arguments: dict[str, Any], chosen: Settings | None, entry: DispatchEntry, sibling: Sibling | None
    ) -> None:
        """Puts an entry into generated code; there is code for each of the first structures that come."""
        with self._lock:
            quick = next((one for one in self.quicks if one.structure.fits(arguments)), None)
            if quick is None:
                if len(self.quicks) >= _MOST_STRUCTURES:
                    return
                quick = Quick(self.name, self.parameters, arguments, self._slowly)
                if not quick.structure.is_regular:
                    return
                self.quicks.append(quick)
            if quick.add(chosen, arguments, entry, sibling):
                # Each passes what it does not know on to the next; the last one goes the long way.
                following = [*(one.call for one in self.quicks[1:]), self._slowly]
                for one, other in zip(self.quicks, following, strict=True):
                    one.slowly = other
                self.__call__ = self.quicks[0].call

    def _sibling(self, call: Call, chosen: Settings | None) -> Sibling | None:
        """Makes entries for calls that differ from this one in sizes alone; None where each takes the long way."""
        if self.donated or self.graphs or any(leaf.number is not None for leaf in call.leaves):
            return None
        family = self.families.get((self._device(call), chosen, *call.key))
        if self.careful and family is not None and any(variant.traced.index_ranges for variant in family.variants):
            return None
        return None if family is None else functools.partial(_resized, family, self._lock)

    def _entry(self, call: Call, chosen: Settings | None) -> DispatchEntry:
        start = perf_counter()
        with self._lock:
            variant, sizes, bound = self._bound(call, chosen)
        collect_after(perf_counter() - start)
        run = bound.run
        if any(leaf.number is not None for leaf in call.leaves) and not self._device(call).is_host:
            run = _moving(run, call, self._device(call))
        if self.donated:
            run = _donating(run, call, self.donated)
        if self.careful and variant.traced.index_ranges and self._device(call).is_host:
            run = looking(run, self.name, variant.traced.index_ranges, sizes)
        return DispatchEntry(variant.unchanged, run, variant.traced.hidden, finish_for(variant.traced, sizes))

    def _device(self, call: Call) -> Device:
        return device_of(self.name, call)

    def _bound(self, call: Call, chosen: Settings | None) -> tuple[Variant, dict[str, int], BoundProgram]:
        variant, sizes = self._variant(call, chosen)
        values = self._on_device(call, variant)
        try:
            graph = self.graphs and self._recorded < _MOST_GRAPHS
            with boundary(self.name, "binding", lambda: variant.program.codes.graph_text):
                bound = variant.program.bind(values, graph=graph, donated=_indices_of(call, self.donated))
            self._recorded += bound.recorded > 0
            return variant, sizes, bound
        except CompileError as error:
            if chosen is None or chosen.demanded:
                raise
            refuse_fallback(self.name, error)
            # Machine code is made when a program is first bound, so that this is where it may be found to have none.
            variant.program, variant.fallback = interpreted(variant.traced), error.message
            log_fallback(self.name, error)
            return variant, sizes, variant.program.bind(values)

    def _on_device(self, call: Call, variant: Variant) -> list[Tensor]:
        index = self._device(call)
        moved = [
            value.to(index) if leaf.number is not None else value
            for leaf, value in zip(call.leaves, call.values, strict=True)
        ]
        return [*moved, *variant.traced.hidden]

    def _variant(self, call: Call, chosen: Settings | None) -> tuple[Variant, dict[str, int]]:
        """The variant that serves a call: one that there is, one from the disk, or a new one."""
        device = self._device(call)
        if len(self.families) > _MOST_FAMILIES:
            self.families.clear()
        key = (device, chosen, *call.key)
        family = self.families.get(key) or self.families.setdefault(key, Family(device))
        family.seen.add(call.values)
        for variant in family.variants:
            sizes = sizes_for(variant.traced, call.values)
            if sizes is not None and (variant.unchanged is None or variant.unchanged()):
                return variant, sizes
        variant = self._made(call, family, chosen)
        sizes = sizes_for(variant.traced, call.values)
        assert sizes is not None, "a function serves the arguments that it was traced for"
        return variant, sizes

    def _made(self, call: Call, family: Family, chosen: Settings | None) -> Variant:
        store = self._store(call, family.device, chosen, self.name)
        unkept = store if isinstance(store, str) else None

        def made(traced: TracedFunction) -> tuple[Program, str | None]:
            nonlocal unkept
            program, fallback = self._program(traced, family, chosen)
            if fallback is None and not isinstance(store, str):
                unkept = store.keep(traced, program)
            return program, fallback

        variant = self.new_variant(call, family, made, None if isinstance(store, str) else store)
        variant.unkept = unkept
        if unkept is not None and chosen is not None and "cache" in knobs.logs.value:
            logging.getLogger("tessera.cache").warning("%s is not kept on the disk: %s", self.name, unkept)
        return variant

    def variant_store(
        self, call: Call, device: Device, chosen: Settings | None, name: str | None = None
    ) -> VariantStore | None:
        """Where variants for such calls are kept; None where they cannot be."""
        found = self._store(call, device, chosen, name or self.name)
        return None if isinstance(found, str) else found

    def _store(self, call: Call, device: Device, chosen: Settings | None, name: str) -> VariantStore | str:
        fast = self.is_fast(chosen)
        return VariantStore.of(name, self.identity, self.parameters, call, device, chosen, fast)

    def _program(self, traced: TracedFunction, family: Family, chosen: Settings | None) -> tuple[Program, str | None]:
        """A traced function compiled; in the interpreter, and why, where it has no machine code."""
        try:
            return _compiled(traced, family.device, self.is_fast(chosen)), None
        except CompileError as error:
            if chosen is None or chosen.demanded:
                raise
            refuse_fallback(self.name, error)
            log_fallback(self.name, error)
            return interpreted(traced), error.message

    def new_variant(
        self,
        call: Call,
        family: Family,
        compile_: Callable[[TracedFunction], tuple[Program, str | None]],
        store: VariantStore | None = None,
    ) -> Variant:
        """The function traced for a call of a family, and compiled; or found, as it was left on the disk."""
        reason = explain.reason(self.name, call, family, caller_span(), len(self.reasons))
        watch = watching.TraceDependencies(self.function, *[one.value for one in call.key if isinstance(one, Static)])
        found = None if store is None else store.find(call)
        if found is not None:
            traced, program = found
            traced.name = self.name
            unchanged, unwatched = watch.settled(lifted=traced.lifted)
            traced.lifted = ()
            return self._added(family, Variant(traced, program, reason, unchanged, unwatched, found=True))
        traced = self.trace(call, family.seen, family.device)
        unchanged, unwatched = watch.settled(self._effects, traced.lifted, [one.is_same for one in traced.copied])
        if family.seen.narrowed is not None:
            reason = replace(reason, text=f"{reason.text}; with {family.seen.narrowed}")
        program, fallback = compile_(traced)
        traced.lifted = ()
        if self.reasons and "recompiles" in knobs.logs.value:
            logging.getLogger("tessera.recompiles").warning("%s is compiled again: %s", self.name, reason)
        return self._added(family, Variant(traced, program, reason, unchanged, unwatched, fallback))

    def _added(self, family: Family, variant: Variant) -> Variant:
        family.variants = [one for one in family.variants if one.unchanged is None or one.unchanged()]
        family.variants.append(variant)
        self.reasons.append(variant.reason)
        return variant

    def identity_parts(self) -> tuple[Any, ...]:
        """The dependencies of a function that uses this one, as `tile/identity/fingerprint.py` has them."""
        options = {name: value for name, value in self._options.items() if value is not None}
        return (self.identity, self.fast_math, *[(name, tuple(value)) for name, value in sorted(options.items())])

    def is_fast(self, chosen: Settings | None) -> bool:
        """Whether results may be rounded differently for speed: as the function says, or the knob."""
        return (chosen is not None and chosen.fast_math) if self.fast_math is None else self.fast_math

    def trace(self, call: Call, seen: ObservedSizes, device: Device) -> TracedFunction:
        """The function traced for a call; with sizes as numbers where it refuses them as symbols."""
        try:
            return self._traced_somehow(call, seen, device)
        except FAULTS as error:
            if isinstance(error, TesseraError) or comes_from_outside(error):
                raise
            raise fault(self.name, "tracing", error) from error

    def _traced_somehow(self, call: Call, seen: ObservedSizes, device: Device) -> TracedFunction:
        try:
            return self._traced(call, seen, device)
        except Exception as error:  # of the user's code as well
            symbols = [one for one in pattern_of(call, self.parameters, seen).numbers if is_automatic(one)]
            if not symbols:
                raise
            refusal = error
        return narrowed(self.name, lambda trial: self._traced(call, trial, device), symbols, seen, refusal)

    def _traced(self, call: Call, seen: ObservedSizes, device: Device) -> TracedFunction:
        """The function traced for a call; again, with sizes unified, where it is found to need that."""
        for _ in range(_MOST_TRACES):
            pattern = pattern_of(call, self.parameters, seen)
            try:
                return trace_function(
                    self.name, self.function, pattern.types, call.rebuild, device, pattern.numbers, pattern.intervals
                )
            except TraceAgain as wish:
                seen.replaced |= wish.replaced
        raise TesseraError(
            f"{self.name} was traced {_MOST_TRACES} times, and each time it needed other sizes to be equal",
            hint="name the sizes in annotations",
        )

    # Looking inside

    @trimmed
    def lower(self, *args: Any, **kwargs: Any) -> explain.Lowered:
        """The function for these arguments at every level, without running it."""
        call = self.parameters.call(self.parameters.bind(args, kwargs))
        with self._lock:
            variant, _ = self._variant(call, settings())
        return explain.Lowered(variant)

    def explain(self) -> explain.Explanation:
        """A report of the programs: the arguments each was compiled for, its guards, and why it was compiled."""
        tiers = () if self._tiered is None else tuple(self._tiered.explain())
        return explain.Explanation(self.name, list(self.families.values()), list(self.reasons), tiers)

    @trimmed
    def check(self, *args: Any, **kwargs: Any) -> Checked:
        """Traces the function for types such as `Tensor["B", 64, f32]`, arrays or numbers; nothing is compiled or run.

        Gives the types of the results; what does not fit together is an error at its line.
        """
        from tessera.lang.checking import checked

        return checked(self.function, self.parameters, args, kwargs)


def _of_operator(function: Held) -> Iterable[str] | None:
    """The parameters of an operator whose numbers are arguments; its others are static, as in eager calls."""
    eager = getattr(alive(function), "eager", None)
    return eager.parameters.numbered if isinstance(eager, Jitted) else None


def _several(given: int | Iterable[int]) -> tuple[int, ...]:
    return (given,) if isinstance(given, int) else tuple(given)


def _made_again(function: Any, given: Mapping[str, Any]) -> Jitted:
    return Jitted(function_behind(function), **given)


def _compiled(traced: TracedFunction, device: Device, fast_math: bool) -> Program:
    from tessera.programs import compile_graph

    return compile_graph(
        traced.module if not fast_math else made_fast(traced.module), str(device), world=current_machine
    )


def made_fast(module: ModuleOp) -> ModuleOp:
    """A copy whose results may be rounded differently."""
    from tessera.ir import text
    from tessera.transforms.algebra.fast_math import FastMath

    copy = module.clone()
    FastMath().apply(text.new_context(), copy)
    return copy


def interpreted(traced: TracedFunction) -> Program:
    """A traced function in the interpreter."""
    from tessera.programs import compile_graph

    with knobs.interpret.using(True):
        return compile_graph(traced.module, world=current_machine)


def refuse_fallback(name: str, error: CompileError) -> None:
    """Raises the error of what would run in the interpreter, where fallbacks are errors; a fault is always told."""
    if isinstance(error, FallbackError):
        raise error
    if knobs.no_fallbacks.value and not isinstance(error, InternalError):
        raise in_the_interpreter(name, error) from error


def log_fallback(name: str, error: TesseraError) -> None:
    """Says that a function has no machine code, where fallbacks are logged; a fault of the compiler is a warning."""
    tell(name, error)
    if "fallbacks" in knobs.logs.value:
        logging.getLogger("tessera.fallbacks").warning("%s runs in the interpreter: %s", name, error.message)


def _resized(family: Family, lock: RLock, values: Sequence[Tensor]) -> DispatchEntry | None:
    """An entry for arrays of other sizes, by code that an earlier binding of the variant left."""
    shapes = tuple([value.meta.shape for value in values])  # the array of a tensor would make each anew
    with lock:
        for variant in family.variants:
            traced = variant.traced
            sizes = sizes_for(traced, values, shapes)
            if sizes is None or not (variant.unchanged is None or variant.unchanged()):
                continue
            known = sizes if variant.has_same_symbols else None
            try:
                with boundary(traced.name, "binding for other sizes"):
                    run = variant.program.resized([*values, *traced.hidden], known)
            except InternalError:
                return None  # the long way says what is wrong, and what runs instead
            if run is None:
                return None
            family.seen.add_shapes(shapes)
            return DispatchEntry(variant.unchanged, run, traced.hidden, finish_for(traced, sizes))
    return None


def finish_for(traced: TracedFunction, sizes: Mapping[str, int]) -> Finish | None:
    """The function that makes a function's result of its program's results, for these sizes."""
    if traced.finish is not None:
        return traced.finish[0]
    leaves = [
        ResultIndex(one.result)
        if one.result is not None
        else one.constant
        if one.size is None
        else one.size.evaluate(sizes)
        for one in traced.outcomes
    ]
    found = finishing(traced.structure, leaves)
    if all(one.size is None for one in traced.outcomes):
        traced.finish = (found,)
    return found


def _moving(run: Callable[..., Any], call: Call, device: Device) -> Callable[..., Any]:
    """Numbers go to the device with each call."""
    indices = [index for index, leaf in enumerate(call.leaves) if leaf.number is not None]

    def moved(*values: Tensor) -> Any:
        given = list(values)
        for index in indices:
            given[index] = given[index].to(device)
        return run(*given)

    return moved


def _donating(run: Callable[..., Any], call: Call, donated: frozenset[str]) -> Callable[..., Any]:
    """Arguments that are given away are gone after the call."""
    indices = _indices_of(call, donated)

    def given_away(*values: Tensor) -> Any:
        try:
            return run(*values)
        finally:  # also where something went wrong: results may have been written there already
            for value in {id(values[index]): values[index] for index in indices}.values():
                value.give_away()

    return given_away


def _indices_of(call: Call, names: frozenset[str]) -> list[int]:
    """Which of a call's values belong to arguments of these names."""
    return [index for index, leaf in enumerate(call.leaves) if leaf.name.split("[")[0] in names]


def device_of(name: str, call: Call) -> Device:
    """The one device of all arguments; numbers go anywhere."""
    devices: dict[Device, Tensor] = {}
    for leaf, value in zip(call.leaves, call.values, strict=True):
        if leaf.number is None:
            devices.setdefault(value.device, value)
    if len(devices) > 1:
        shapes = [f"{format_shape(value.shape)} of {value.dtype} on {index}" for index, value in devices.items()]
        raise DeviceError(
            f"{name}: arguments are on different devices: {', '.join(map(str, devices))}",
            shapes=shapes,
            hint="bring them to one device first: .to(...)",
        )
    return next(iter(devices), None) or default_device()


# Parameters are any for type checkers: a jitted function takes arrays of other libraries where it names tensors.
@overload
def jit(
    function: Callable[..., R],
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    donate_argnums: int | Sequence[int] = (),
    fast_math: bool | None = None,
    graphs: bool = False,
    tiers: Any = "off",
) -> Jitted[..., R]: ...
@overload
def jit(
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    donate_argnums: int | Sequence[int] = (),
    fast_math: bool | None = None,
    graphs: bool = False,
    tiers: Any = "off",
) -> Callable[[Callable[..., R]], Jitted[..., R]]: ...
def jit(
    function: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    donate_argnums: int | Sequence[int] = (),
    fast_math: bool | None = None,
    graphs: bool = False,
    tiers: Any = "off",
) -> Any:
    """Compiles a function over tensors: it is traced once per kind of arguments, compiled, and run.

        @ts.jit
        def f(x, w):
            return ts.relu(x @ w)

        f(x, w)              # traces, compiles and runs; later calls run
        f.lower(x, w).tile_ir.text, f.explain()

    static_argnums, static_argnames: arguments that are part of the program; each of their values has one of its own.
    donate_argnums: arguments that are gone after the call; results may take their memory.
    fast_math: results may differ in their last digits for speed; None leaves it to the knob.
    graphs: launches on a GPU are replayed as a CUDA graph, with an arena of its own for each kind of arguments.
    tiers: "auto" starts with a program that compiles fast, and replaces it by faster ones while it runs; a
    `MetaTracingRuntime` does the same under its own settings.
    """

    decorate = functools.partial(
        Jitted,
        static_argnums=static_argnums,
        static_argnames=static_argnames,
        donate_argnums=donate_argnums,
        fast_math=fast_math,
        graphs=graphs,
        tiers=tiers,
    )
    return decorate if function is None else decorate(function)
