"""`@kernel`: a Python function over tiles, instantiated per schedule and facts, and run over its grid."""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import FunctionType
from typing import Any, NamedTuple, Self, overload

from tessera import knobs
from tessera.cached_property import cached_property
from tessera.errors import (
    AutotuneError,
    CompileError,
    InternalError,
    ResourceError,
    ShapeError,
    SourceSpan,
    TesseraError,
    warn,
)
from tessera.runtime.program.overlap import OverlapError
from tessera.runtime.tensor.creation import asarray
from tessera.runtime.tensor.tensor import Tensor
from tessera.shapes.annotations import TensorType, Tile
from tessera.shapes.signature import Signature
from tessera.tile.calls.arguments import NUMBERS, collect, is_array, kinds_of, plain
from tessera.tile.calls.assumptions import GROUPS, Assumptions
from tessera.tile.calls.block_selection import (
    Choice,
    Choices,
    came_out,
    constants_of,
    is_chosen,
    leaves_depth_open,
    leaves_open,
    multiprocessors_of,
)
from tessera.tile.calls.dispatch import Calls
from tessera.tile.calls.grids import GRID_OF_STORES, GridFunction, GridOfStores
from tessera.tile.calls.guarded_kernel import GuardedKernel
from tessera.tile.calls.instance import Instance
from tessera.tile.calls.interpreting import interpret
from tessera.tile.calls.overlapping import log_overlap, merged_groups
from tessera.tile.calls.program_cache import Kept, Programs
from tessera.tile.calls.schedule_hint import suggesting
from tessera.tile.calls.settings import Settings, device_of, settings, settings_on
from tessera.tile.identity.captures import CapturedValues
from tessera.tile.identity.fingerprint import identity_of
from tessera.tile.identity.pickling import Made, Named, function_behind
from tessera.tile.identity.static_keys import AS_THEY_ARE, exact
from tessera.tile.language.schedule import Schedule, Space
from tessera.tile.language.values import is_tracing
from tessera.transforms.core.facts import FactKind, holds

DEFAULT = Schedule(block=(64, 64))


class Explained(str):
    """A text that shows itself at a prompt as it is printed."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


_MOST_GRIDS = 256  # that a kernel remembers; they are quick to make again
_FORM = ("schedule", "space", "tuning", "given_grid", "free", "matched", "assumed", "overlapping")
"""In which forms of a kernel differ."""


class BoundCall(NamedTuple):
    """A call's arguments by name, runtime and static ones, and the keys of its programs here and in any process."""

    given: dict[str, Any]
    static: dict[str, Any]
    key: Any
    identity: Callable[[], tuple[object, ...] | None]


class Kernel(Named):
    """A kernel: call it on arrays, or `kernel[grid](...)`; `.with_schedule(s)` gives one cut up otherwise.

    `.assume(...)` gives one that is compiled for facts that its arguments are found to have.
    """

    # Each form of a kernel has a function of its own for its calls, written for its parameters; see `calls`.
    __slots__ = ("__call__", "__dict__", "__weakref__")
    __call__: Callable[..., Any]

    def __init__(
        self,
        function: FunctionType,
        schedule: Schedule = DEFAULT,
        *,
        space: Space | None = None,
        tuning: Mapping[str, Any] | None = None,
        free: bool = False,
        instances: dict[Any, list[Instance]] | None = None,
    ) -> None:
        self.function = function
        self.schedule = schedule
        self.space = space
        self.tuning = dict(tuning or {})
        # Sizes, or what works them out; None where it is inferred.
        self.given_grid: tuple[int, ...] | GridFunction | GridOfStores | None = None
        # Whether the kernel was given no block: for some GPUs one is chosen then.
        self.free = free
        # Whether its programs may depend on leading sizes of arrays being equal: such have less to compute.
        self.matched = False
        # Arrays that may overlap, in groups of paths: loads and stores of one group stay in order.
        self.overlapping: tuple[tuple[str, ...], ...] = ()
        self.__name__ = function.__name__
        self.__qualname__ = function.__qualname__
        self.__module__ = function.__module__
        self.__doc__ = function.__doc__
        self.__wrapped__ = function
        self.assumed = Assumptions()
        self.signature = inspect.signature(function)
        self._instances = {} if instances is None else instances
        self._programs = Programs()
        self._choices = Choices()
        self._seen: CapturedValues | None = None
        self._grids: dict[tuple[int, ...], Self] = {}
        # What the kernel's user has been warned of; all forms of the kernel share it.
        self._warned_of: set[str] = set()
        self.__call__ = self.calling()

    def calling(self) -> Callable[..., Any]:
        """The function behind a call: at first the long way, which then replaces itself by a quicker one."""
        return Calls(self).slowly

    def __repr__(self) -> str:
        return f"<kernel {self.description}>"

    @property
    def description(self) -> str:
        """The kernel's name and schedule, whether that should have been tuned, and what is assumed."""
        assumed = f", assuming {self.assumed}" if self.assumed else ""
        return f"{self.__name__} {self.schedule}{self.standing()}{assumed}"

    def standing(self, made: Instance | GuardedKernel | None = None) -> str:
        """The words after the schedule of a kernel, or of a program of it, where there was a choice and no tuning."""
        count = 1 if self.space is None else self.space.count(None if made is None else made.row_width)
        return "" if count == 1 or self.tuning.get("tuned") else f", not tuned: first of {count} valid schedules"

    def explain(self) -> Explained:
        """The programs that calls of this kernel have used: for which arguments, how compiled, and what was refused.

        What says `slower than` is a fallback: there is faster code of this kind, and the reason says why not here.
        """
        lines = [f"{self.__name__}: {len(programs := self._programs.all())} programs"]
        for program in programs:
            guards = ", ".join(map(str, program.guards)) or "all arguments"
            way = "the interpreter" if program.executable is None else program.target
            lines.append(f"  {program.schedule}, by {way}, for {guards}")
            lines += [f"    {line}" for line in program.report.lines()]
        return Explained("\n".join(lines))

    def with_schedule(self, schedule: Schedule) -> Self:
        """The same kernel under another schedule; what that leaves open stays."""
        if _checked(schedule, "with_schedule") is None:
            raise CompileError("with_schedule takes a Schedule, got None", hint="write Schedule(block=(64, 64))")
        if self.space is None:
            return self.changed(schedule=schedule.over(self.schedule), free=self.free and leaves_open(schedule))
        space = self.space.narrowed(schedule)
        return self.changed(schedule=space.first().over(self.schedule), space=space)

    def assume(self, *what: str) -> Self:
        """The same kernel, compiled for facts that its arguments are found to have; others get other programs.

        `what` are `sizes`, `strides` and `values`, or single ones such as `a.size[1]`, `b.stride[0]` and `scale`;
        without any, sizes and strides. They add to what is assumed already.
        """
        parameters = self.signature.parameters.values()
        given = [one.name for one in parameters if one.kind is not inspect.Parameter.KEYWORD_ONLY]
        words = what or (GROUPS[FactKind.SIZE], GROUPS[FactKind.STRIDE])
        return self.changed(assumed=self.assumed.more(words, self.__name__, given))

    def in_order(self, groups: Iterable[Iterable[str]]) -> Self:
        """The same kernel for calls in which the arrays of a group, given by their paths, overlap."""
        merged = merged_groups([*self.overlapping, *map(tuple, groups)])
        if merged == self.overlapping:
            return self
        log_overlap(self.__name__, merged)
        return self.changed(overlapping=merged)

    def __getitem__(self, grid: int | tuple[int, ...]) -> Self:
        """The kernel with its grid given instead of inferred."""
        sizes = grid if isinstance(grid, tuple) else (grid,)
        if not 1 <= len(sizes) <= 3 or not all(size.__class__ is int and size >= 0 for size in sizes):
            raise ShapeError(
                f"a grid is one to three sizes, whole numbers from 0 on, got {grid!r}",
                hint=f"write {self.__name__}[4, 2](...); {self.__name__}.grid(lambda ...) works it out of sizes",
            )
        if sizes not in self._grids:
            if len(self._grids) >= _MOST_GRIDS:
                self._grids.clear()
            self._grids[sizes] = self.changed(given_grid=sizes)
        return self._grids[sizes]

    def grid(self, function: Callable[..., Any]) -> Self:
        """The kernel with its grid worked out of sizes, by a function of parameters of the kernel's.

            by_blocks.grid(lambda x, block: (tile.cdiv(x.shape[0], block.m), tile.cdiv(x.shape[1], block.n)))

        Arrays have shape, ndim and dtype there, static arguments are themselves, and `block` has the block sizes m, n
        and k. One program serves all sizes.
        """
        return self.changed(given_grid=GridFunction.of(self.__name__, function, self.signature))

    @property
    def follows_block(self) -> bool:
        """Whether the grid follows the block sizes, so that others may be chosen."""
        given = self.given_grid
        return given is None or (isinstance(given, GridFunction) and given.takes_blocks)

    def changed(self, **parts: Any) -> Self:
        """Another form of this kernel; schedule and grid are part of the key, so instances are shared."""
        other = object.__new__(type(self))
        vars(other).update(vars(self) | parts, _grids={})
        other.__call__ = other.calling()
        return other

    def as_made(self) -> Made:
        return _made_again, (self.function, {name: getattr(self, name) for name in _FORM})

    def trace_and_run(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """A call that has an instance, with any settings."""
        return self.run(*self._instance_for(args, kwargs))

    def run(self, instance: Instance, values: Sequence[Any]) -> Any:
        """Runs an instance; the first time, warns of a schedule that was not tuned."""
        self.warn_if_not_tuned(instance)
        return self.execute(instance, values)

    def warn_if_not_tuned(self, made: Instance | GuardedKernel) -> None:
        """Warns once that there was a choice of schedules, and that the first was taken without tuning."""
        if self.space is not None and "tuning" not in self._warned_of and (standing := self.standing(made)):
            self._warned_of.add("tuning")
            warn(f"kernel {self.__name__} {made.schedule}{standing}; there is no tuner yet")

    def execute(self, instance: Instance, values: Sequence[Any]) -> Any:
        """Runs an instance: as machine code, or in the interpreter where that is asked for or cannot be."""
        chosen = settings()
        if chosen is None:
            return interpret(instance, values)
        here = settings_on(device_of(self.__name__, values), chosen)
        try:
            return self._programs.of_instance(instance, values, here, self.assumed).run(values, here)
        except OverlapError as error:
            groups = [[instance.paths[index] for index in pair] for pair in error.pairs]
            return self.execute(instance.in_order(groups), values)

    def program_for(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], chosen: Settings
    ) -> tuple[GuardedKernel, list[Any]]:
        """The compiled program for these arguments, and its values for them."""
        given, static = self._bind(args, kwargs)
        here = settings_on(device_of(self.__name__, given.values()), chosen)
        choice = self._choice(given, static, here)
        while choice is not None and (block := self._block_of(choice, given, static)) is not None:
            try:
                program, values = self._in_block(block).own_program(given, static, here)
            except TesseraError:
                choice.refuse(block)  # without any, the default says what is wrong, if it is not the block
                continue
            if came_out(program):
                return program, values
            choice.refuse(block)
        return self.own_program(given, static, here)

    def form_for(self, args: Sequence[Any], kwargs: Mapping[str, Any], chosen: Settings | None = None) -> Self:
        """The form of the kernel that serves these arguments: itself, or under a schedule that was chosen for them."""
        settled = settings() if chosen is None else chosen
        if settled is None:
            return self
        given, static = self._bind(args, kwargs)
        choice = self._choice(given, static, settings_on(device_of(self.__name__, given.values()), settled))
        block = None if choice is None else self._block_of(choice, given, static)
        return self if block is None else self._in_block(block)

    def interpreted(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """A call in the interpreter, whatever the settings say."""
        return interpret(*self._instance_for(args, kwargs))

    def bound(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> BoundCall:
        """Arguments as programs depend on them."""
        given, static = self._bind(args, kwargs)
        return BoundCall(given, static, self.program_key(given, static), lambda: self._identity(given, static))

    def known_program(self, bound: BoundCall, here: Settings) -> GuardedKernel | None:
        """The compiled program for arguments, if this process or the disk has it; nothing is compiled."""
        # A kernel that was not looked at has no program of a chosen block, either.
        choice = self._choice(bound.given, bound.static, here, make=False)
        block = None if choice is None else self._block_of(choice, bound.given, bound.static)
        return (self if block is None else self._in_block(block)).own_known_program(bound, here)

    def own_known_program(self, bound: BoundCall, here: Settings) -> GuardedKernel | None:
        """The same under the kernel's own schedule."""
        found = self.found_for(bound.given, bound.static, here)
        return None if found is None else found[0]

    def found_for(
        self, given: Mapping[str, Any], static: Mapping[str, Any], here: Settings
    ) -> tuple[GuardedKernel, list[Any]] | None:
        """The program that is known for these arguments, and its values for them."""
        key = self.program_key(given, static)
        return self._programs.known(key, given, here, self.assumed, identity=lambda: self._identity(given, static))

    def _grid_instead(self, program: GuardedKernel, values: Sequence[Any]) -> str:
        """Why a program is not one for the grid that was given; nothing where it is."""
        if program.executable is None:
            return "there is no machine code of that"
        plan = program.executable.plan
        sizes = plan.sizes([value.shape if isinstance(value, Tensor) else None for value in values])
        grid = plan.extents(sizes)
        return "" if grid == self.given_grid else f"its stores ask for {list(grid)}"

    def _of_any_grid(
        self, given: Mapping[str, Any], static: Mapping[str, Any], here: Settings
    ) -> tuple[GuardedKernel, list[Any]] | None:
        """The program of all grids that stores ask for, where it serves this one and many grids of numbers came before.

        The first few have programs of their own: of constant sizes a grid can be cut into clusters, for one thing.
        """
        if not isinstance(self.given_grid, tuple) or self.found_for(given, static, here) is not None:
            return None
        form = self.changed(given_grid=GRID_OF_STORES[len(self.given_grid)])
        if not self._programs.has_many_grids((form.program_key(given, static), here), self.given_grid):
            return None
        try:
            found = form.own_program(given, static, here)
            if not (reason := self._grid_instead(*found)):
                return found
        except InternalError:
            raise
        except TesseraError as error:
            reason = error.message
        if "recompiles" in knobs.logs.value:
            import logging

            logging.getLogger("tessera.recompiles").warning(
                "%s is compiled for the grid %s alone: %s", self.__name__, self.given_grid, reason
            )
        return None

    def blocks_for(self, bound: BoundCall, here: Settings) -> list[tuple[int, ...]]:
        """The blocks that the model of a GPU has for arguments, best first; none where there is no model."""
        choice = self._choice(bound.given, bound.static, here)
        return [] if choice is None else choice.ranked(bound.given, multiprocessors_of(bound.given))

    def knows_blocks(self, bound: BoundCall, here: Settings) -> bool:
        """Whether `blocks_for` need not look at the kernel first, which takes as long as tracing it."""
        return not is_chosen(here) or self._choice(bound.given, bound.static, here, make=False) is not None

    def _block_of(self, choice: Choice, given: Mapping[str, Any], static: Mapping[str, Any]) -> tuple[int, ...] | None:
        """The block for a call; where a function gives the grid, it counts program instances."""
        grid = self.given_grid
        instances = partial(grid.count, {**given, **static}) if isinstance(grid, GridFunction) else None
        return choice.block_for(given, multiprocessors_of(given), instances)

    def _choice(
        self, given: Mapping[str, Any], static: Mapping[str, Any], here: Settings, *, make: bool = True
    ) -> Choice | None:
        """The blocks that the kernel may have for these arguments, where it is left to choose them."""
        whole = self.free and self.follows_block
        if self.space is not None or not is_chosen(here) or not (whole or self._is_depth_open):
            return None

        def trace(schedule: Schedule) -> Instance:
            return self.changed(schedule=schedule.over(self.schedule)).traced(given, static)

        def kept() -> Kept | None:
            return Kept.of("choice", self._identity(given, static), here, self.assumed)

        fixed = () if whole else self.schedule.block or ()
        key, seen = self.program_key(given, static), {**static, **constants_of(self.function)}
        return self._choices.find(key, given, seen, trace, here.compiler, fixed, kept, make=make)

    @property
    def _is_depth_open(self) -> bool:
        """Whether the block was given as (m, n): a grid follows from these, and k is left."""
        return not self.free and leaves_depth_open(self.schedule, self.function)

    def _in_block(self, block: tuple[int, ...]) -> Self:
        return self.changed(schedule=Schedule(block=block).over(self.schedule), free=False)

    def own_program(
        self, given: Mapping[str, Any], static: Mapping[str, Any], here: Settings
    ) -> tuple[GuardedKernel, list[Any]]:
        """The compiled program under the kernel's own schedule."""
        if (found := self._of_any_grid(given, static, here)) is not None:
            return found
        key = self.program_key(given, static)
        try:
            return self._programs.find(
                key,
                given,
                here,
                self.assumed,
                identity=lambda: self._identity(given, static),
                trace=lambda: self._instance(key, given, static)[0],
            )
        except ResourceError as error:

            def trace(schedule: Schedule) -> Instance:
                return self.changed(schedule=schedule, space=None).traced(given, static)

            raise suggesting(error, self.schedule, trace, here) from None

    def lower(self, *args: Any, **kwargs: Any) -> Instance:
        """The program for these arguments, without running it."""
        if (form := self.form_for(args, kwargs)) is not self:
            return form.lower(*args, **kwargs)
        instance, values = self._instance_for(args, kwargs)
        return self.assumed.applied(instance, values)

    def _instance_for(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Instance, list[Any]]:
        if is_tracing():
            raise CompileError(
                f"{self.__name__} is a kernel, called inside a kernel",
                hint="share a plain function: kernels are started from outside",
            )
        given, static = self._bind(args, kwargs)
        return self._instance(self.program_key(given, static), given, static)

    def _instance(self, key: Any, given: Mapping[str, Any], static: Mapping[str, Any]) -> tuple[Instance, list[Any]]:
        for instance in self._instances.get(key, ()):
            values = collect(instance.paths, given)
            named = _named(values)
            if kinds_of(values) == instance.kinds and all(holds(atom, named) for atom in instance.guards):
                return instance, values
        instance = self.traced(given, static)
        self._instances.setdefault(key, []).append(instance)
        return instance, collect(instance.paths, given)

    def _bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Arguments by name: arrays, objects and scalars of the program; and keyword-only ones, which are static."""
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise CompileError(f"{self.__name__}: {error}", hint=f"it takes {self.signature}") from None
        bound.apply_defaults()
        given: dict[str, Any] = {}
        static: dict[str, Any] = {}
        for name, value in bound.arguments.items():
            if self.signature.parameters[name].kind is inspect.Parameter.KEYWORD_ONLY:
                static[name] = value
            else:
                given[name] = asarray(value) if is_array(value) else plain(value)
        # Of what is no array only a tile must be one; other objects may hold arrays.
        shaped = {name: value for name, value in given.items() if isinstance(value, Tensor) or name in self.tiles}
        self.annotations.bind(shaped)
        self.assumed.check(self.__name__, given)
        return given, static

    def program_key(self, given: Mapping[str, Any], static: Mapping[str, Any]) -> Any:
        """The key of programs for such arguments, in this process."""
        try:
            hash(tuple(static.values()))
        except TypeError:
            raise CompileError(
                f"{self.__name__}: keyword-only arguments are static and must be hashable, got {dict(static)!r}",
                hint="pass arrays as positional arguments",
            ) from None
        flags = tuple((name, exact(value)) for name, value in static.items())
        return (
            self.schedule,
            self.space,
            self.given_grid,
            self.matched,
            self.overlapping,
            kinds_of(given.values()),
            flags,
            self.seen(static.values()).key,
        )

    def seen(self, static: Iterable[Any]) -> CapturedValues:
        """The values that the kernel sees from outside; static arguments may be functions, and objects that change."""
        own = [self.given_grid.function] if isinstance(self.given_grid, GridFunction) else []
        functions = (self.function, *own, *[value for value in static if callable(value) or _is_itself(value)])
        if self._seen is None or not self._seen.serves(functions):
            self._seen = CapturedValues(functions)
        return self._seen

    def _identity(self, given: Mapping[str, Any], static: Mapping[str, Any]) -> tuple[object, ...] | None:
        """The same as `program_key` for other processes; None where something in it means nothing there."""
        kinds = tuple([_kind_text(value) for value in given.values()])
        types = tuple([(name, str(found)) for name, found in self.annotations.parameters.items()])
        given_grid = self.given_grid.function if isinstance(self.given_grid, GridFunction) else self.given_grid
        rest = (given_grid, self.matched, self.overlapping)
        parts = identity_of(self.function, tuple(static.items()), self.schedule, self.space, rest)
        return None if parts is None else (*parts, kinds, types)

    def traced(self, given: Mapping[str, Any], static: Mapping[str, Any]) -> Instance:
        """An instance for these arguments, made anew."""
        from tessera.tile.calls.trace import trace

        if self.space is None:
            return trace(self, given, static)
        refusals: dict[str, ResourceError] = {}
        for point in self.space:
            try:
                return trace(self.changed(schedule=point.over(self.schedule)), given, static)
            except ResourceError as error:
                refusals.setdefault(error.message, error)
        *_, last = refusals.values()
        raise AutotuneError(
            f"no schedule in the space of {self.__name__} serves these arguments",
            span=last.span,
            story=list(refusals),
            hint=last.hint,
        )

    @cached_property
    def annotations(self) -> Signature:
        """The shapes and dtypes that annotations ask for, as they are when the kernel is first called."""
        return Signature.of(self.function)

    @cached_property
    def tiles(self) -> Mapping[str, SourceSpan | None]:
        """The parameters annotated `Tile`, and where: they are tiles, not arrays to load from."""
        read = self.annotations
        return {name: read.span(name) for name, found in read.parameters.items() if found is Tile}

    @cached_property
    def outputs(self) -> frozenset[str]:
        """The parameters annotated `Out`: arrays that the kernel fills."""
        return self.annotations.outputs

    def annotation(self, name: str) -> TensorType | None:
        found = self.annotations.parameters.get(name)
        return found if isinstance(found, TensorType) else None


def _is_itself(value: Any) -> bool:
    """Whether an object is equal to itself alone, so that what it has may be others the next time."""
    return value.__class__ not in AS_THEY_ARE and type(value).__eq__ is object.__eq__


def _kind_text(value: Any) -> object:
    """The kind of an argument; of other objects only the arrays and numbers count that programs find in them."""
    if isinstance(value, Tensor):
        return value.ndim, str(value.dtype)
    return type(value).__name__ if type(value) in NUMBERS else "object"


def _named(values: Sequence[Any]) -> dict[str, Any]:
    return {f"arg{index}": value for index, value in enumerate(values)}


class _Decorator:
    """Makes a kernel of a function over tiles: `@kernel` alone, or with a schedule.

        @kernel
        def scale(x: KTile["M", "N", f32], out: Out[KTile["M", "N", f32]], factor: float):
            tile.store(out, tile.load(x) * factor)

        scale(x, out, 2.0)                      # compiles for these kinds of arguments, and runs
        scale.with_schedule(Schedule(block=(128, 64)))(x, out, 2.0)

    `@kernel.schedule(s)` has a schedule of its own, `@kernel.auto` leaves it to the compiler, and
    `@kernel.autotune(space=…)` has a space of schedules. Keyword-only parameters are static.
    """

    @overload
    def __call__(self, function: Callable[..., Any], *, schedule: Schedule | None = None) -> Kernel: ...
    @overload
    def __call__(
        self, function: None = None, *, schedule: Schedule | None = None
    ) -> Callable[[Callable[..., Any]], Kernel]: ...
    def __call__(self, function: Callable[..., Any] | None = None, *, schedule: Schedule | None = None) -> Any:
        _checked(schedule, "@kernel")
        if function is None:

            def decorate(given: Callable[..., Any]) -> Kernel:
                return self._make(given, schedule or DEFAULT, free=leaves_open(schedule))

            return decorate
        return self._make(function, schedule or DEFAULT, free=leaves_open(schedule))

    def auto(self, function: Callable[..., Any]) -> Kernel:
        """A kernel whose schedule the compiler chooses."""
        return self._make(function, DEFAULT, free=True)

    def schedule(self, schedule: Schedule) -> Callable[[Callable[..., Any]], Kernel]:
        """A kernel under a given schedule."""
        if _checked(schedule, "kernel.schedule") is None:
            raise CompileError("kernel.schedule takes a Schedule, got None", hint="write Schedule(block=(64, 64))")
        return lambda function: self._make(function, schedule.over(DEFAULT), free=leaves_open(schedule))

    def autotune(
        self,
        *,
        space: Mapping[str, Sequence[Any]] | Space,
        metric: str = "latency_ms",
        budget_ms: float = 200,
        cache: str | None = None,
    ) -> Callable[[Callable[..., Any]], Kernel]:
        """A kernel with a space of schedules. There is no tuner yet: it takes the first valid point, and says so."""
        _check_tuning(metric, budget_ms, cache)
        found = space if isinstance(space, Space) else Space.of(space)
        point = found.first()
        tuning = {"metric": metric, "budget_ms": budget_ms, "cache": cache, "tuned": False}

        def decorate(function: Callable[..., Any]) -> Kernel:
            made = self._make(function, point.over(DEFAULT), space=found, tuning=tuning)
            if "autotune" in knobs.logs.value:
                import logging

                logging.getLogger("tessera.autotune").warning(
                    "%s: no tuner yet, taking the first of %d valid schedules: %s", made.__name__, len(found), point
                )
            return made

        return decorate

    @staticmethod
    def _make(function: Callable[..., Any], schedule: Schedule, **options: Any) -> Kernel:
        if isinstance(function, Kernel):  # decorated already, by a verification say
            return function.changed(schedule=schedule, **options)
        if not isinstance(function, FunctionType):
            raise CompileError(f"@kernel decorates a function, got {function!r}", hint="use def")
        return Kernel(function, schedule, **options)


METRICS = ("latency_ms",)
"""The figures that schedules are compared by."""


def _check_tuning(metric: object, budget_ms: object, cache: Any) -> None:
    if metric not in METRICS:
        raise AutotuneError(
            f"kernel.autotune: unknown metric {metric!r}", hint=f"schedules are compared by {', '.join(METRICS)}"
        )
    if not isinstance(budget_ms, int | float) or isinstance(budget_ms, bool) or not 0 < budget_ms < math.inf:
        raise AutotuneError(
            f"kernel.autotune: budget_ms is a number of milliseconds, got {budget_ms!r}",
            hint="give a positive number, such as 200",
        )
    if cache is not None and (cache == "" or not isinstance(cache, str | os.PathLike)):
        raise AutotuneError(
            f"kernel.autotune: cache is the path of a folder, got {cache!r}", hint="leave it out for the usual one"
        )


def _checked(schedule: object, where: str) -> Schedule | None:
    """A schedule, or None."""
    if schedule is not None and not isinstance(schedule, Schedule):
        raise CompileError(f"{where} takes a Schedule, got {schedule!r}", hint="write Schedule(block=(64, 64))")
    return schedule


kernel = _Decorator()


def _made_again(function: Any, form: Mapping[str, Any]) -> Kernel:
    return Kernel(function_behind(function)).changed(**form)
