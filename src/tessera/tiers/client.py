"""The protocol of clients of the tiers: kernels and functions that can be compiled with more or fewer facts.

A client makes a `Call` of each call, and a `Compiled` of a `Call` and a `TierLevel`. When to compile, and which program
to run, is decided in the same way for all clients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from inspect import Signature
from typing import Any, NamedTuple, Protocol

from tessera.runtime.tensor.meta import Meta
from tessera.runtime.tensor.tensor import Tensor
from tessera.tiers.records import Described, ExecutionTier, LaunchFacts, Number
from tessera.tile.language.schedule import Schedule

Runner = Callable[..., Any]
_MANY = 6  # facts that are no longer named one by one


class GuardType(Enum):
    """The property of an argument that a guard compares."""

    SHAPE_GUARD = "size"
    STRIDE_GUARD = "stride"
    ALIGNMENT_GUARD = "alignment"
    CAUSAL_GUARD = "flag"
    """The value of a flag, an argument of class bool such as `causal` of attention."""
    VALUE_GUARD = "value"
    RELATION_GUARD = "relation"


class RuntimeGuard(NamedTuple):
    """A fact that a program was compiled for: the argument, its property, and the value that the program is right for.

    `argument` is the index among the client's arguments. A flag is a number of the class bool.
    """

    guard_type: GuardType
    argument: int
    axis: int
    word: str
    params: Number
    check: Callable[[Any], Number] | None = None
    """Computes the value to compare, where the meta does not have it; for a relation, from all arguments."""

    @staticmethod
    def about(argument: int, path: str, what: str, axis: int, value: Number) -> RuntimeGuard:
        """A guard on a size or a stride of an argument, or on its value."""
        if what == "value":
            kind = GuardType.CAUSAL_GUARD if isinstance(value, bool) else GuardType.VALUE_GUARD
            return RuntimeGuard(kind, argument, 0, path, value)
        return RuntimeGuard(GuardType(what), argument, axis, f"{path}.{what}[{axis}]", value)

    def found(self, values: Sequence[Any]) -> Number:
        """The value that the guard compares, of a call's arguments."""
        if self.guard_type is GuardType.RELATION_GUARD:
            assert self.check is not None
            return self.check(values)
        return self.asked(values[self.argument])

    def asked(self, value: Any) -> Number:
        """The value that the guard compares, of one argument: a tensor, its meta, or a number."""
        if self.check is not None:
            return self.check(value)
        if self.guard_type is GuardType.SHAPE_GUARD:
            return value.shape[self.axis]
        if self.guard_type is GuardType.STRIDE_GUARD:
            return value.strides[self.axis]
        return value

    def check_function(self, values: Sequence[Any]) -> bool:
        """Whether it holds for a call's arguments."""
        found = self.found(values)
        if found.__class__ is not self.params.__class__:
            return False
        # Texts tell zeros apart by their signs, and NaN is equal to itself there.
        return repr(found) == repr(self.params) if found.__class__ is float else found == self.params

    @property
    def is_about_a_number(self) -> bool:
        """Whether it is checked at every call: all other guards are about metas, which are compared as wholes."""
        return self.guard_type in (GuardType.VALUE_GUARD, GuardType.CAUSAL_GUARD)

    @property
    def condition_code(self) -> str:
        """The guard as it is read: `q.size[2] = 512`."""
        is_relation = self.guard_type is GuardType.RELATION_GUARD
        return self.word if is_relation else f"{self.word} = {str(self.params).lower()}"

    def __str__(self) -> str:
        return self.condition_code


@dataclass(frozen=True, slots=True)
class Choice(Schedule):
    """The schedule that models choose: each kernel of a program has the blocks of this rank, 0 being the best.

    For a kernel alone, it is the one that is expected to gain most over its own.
    """

    rank: int = 0

    def __str__(self) -> str:
        return f"blocks of rank {self.rank}"

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class TierLevel:
    """How far to compile: the same pipeline, with these facts and this schedule.

    `assumed` are words such as `sizes`, `q.size[2]` and `scale`; None as schedule is the
    client's own. `quick` asks for fast compilation.
    """

    tier: ExecutionTier
    assumed: tuple[str, ...] = ()
    schedule: Schedule | None = None
    quick: bool = False

    def __str__(self) -> str:
        parts = [f"tier {int(self.tier)}"]
        parts += [str(self.schedule)] if self.schedule is not None else []
        several = len(self.assumed) > _MANY
        assumed = f"{len(self.assumed)} facts" if several else ", ".join(self.assumed)
        parts += [f"assuming {assumed}"] if self.assumed else []
        return ", ".join([*parts, *(["quickly"] if self.quick else [])])

    def with_schedule(self, schedule: Schedule | None) -> TierLevel:
        return replace(self, schedule=schedule)


def described(values: Iterable[Any]) -> Described:
    """Arguments without their memory."""
    return tuple([value.meta if isinstance(value, Tensor) else value for value in values])


class Call(NamedTuple):
    """A call's arguments, split by how programs depend on them.

    values: tensors and numbers, by the client's `paths`. fixed: all else that a program depends on: kinds of
    arguments, static ones, settings; calls with equal ones share a site. context: other data that the client needs to
    compile for it.
    """

    values: tuple[Any, ...]
    fixed: tuple[Any, ...]
    context: Any = None

    @property
    def described(self) -> Described:
        return described(self.values)


class Compiled(Protocol):
    """A program at some level."""

    @property
    def guards(self) -> tuple[RuntimeGuard, ...]: ...

    @property
    def nbytes(self) -> int:
        """The bytes of its code."""
        ...

    @property
    def is_native(self) -> bool:
        """Whether it is machine code: the interpreter takes tensors and not their geometry."""
        ...

    @property
    def is_repeatable(self) -> bool:
        """Whether a run that failed for want of memory or of the driver may be made again by another program."""
        ...

    def bind(self, call: Call) -> Runner:
        """A function of the geometries of tensors, or of tensors, and of numbers, for calls with such metas."""
        ...

    def launch_facts(self, call: Call) -> LaunchFacts: ...


class Client(Protocol):
    """A kernel or function that can run in tiers."""

    @property
    def name(self) -> str: ...

    @property
    def takes_tensors(self) -> bool:
        """Whether programs are functions of tensors, and not of their geometries."""
        ...

    @property
    def paths(self) -> tuple[str, ...]:
        """The names of the arguments that are arrays or numbers."""
        ...

    @property
    def signature(self) -> Signature:
        """Its parameters. Those that `paths` does not name are static: programs depend on their values."""
        ...

    @property
    def token(self) -> Callable[[], object]:
        """A fast function that identifies the current settings: it returns the same object while they are the same."""
        ...

    def static_values(self, call: Call) -> Sequence[Any]:
        """The static arguments of a call, in the order of the signature."""
        ...

    def unchanged(self, call: Call) -> Callable[[], bool]:
        """A fast function that says whether everything that programs were compiled from is still the same."""
        ...

    def call(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Call | None:
        """The call, or None for one that cannot be traced: it is made without tiers."""
        ...

    def call_untiered(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Makes a call without tiers."""
        ...

    def compiles(self, call: Call) -> bool:
        """Whether there is anything to compile to; otherwise Tier 1 is all."""
        ...

    def starts_quickly(self, call: Call) -> bool:
        """Whether a program of fast compilation is ready sooner than an optimized one."""
        ...

    def compile(self, call: Call, level: TierLevel) -> Compiled:
        """Compiles here and now; a TesseraError where that cannot be."""
        ...

    def find(self, call: Call, level: TierLevel) -> Compiled | None:
        """The same from the disk, without compiling."""
        ...

    def request(self, call: Call, levels: Sequence[TierLevel]) -> bytes | None:
        """The data that another process needs to compile this, so that `find` finds it; None where it cannot be sent.

        Without levels, that process finds out which schedules are worth trying, and stores them on the disk.
        """
        ...

    def schedules(self, call: Call) -> Sequence[Schedule | None]:
        """Schedules worth trying for such calls, best first."""
        ...

    def knows_schedules(self, call: Call) -> bool:
        """Whether `schedules` is fast; after a request without levels it is."""
        ...

    def identity(self, call: Call) -> str | None:
        """A name of the site that is the same in every process; None where it has none."""
        ...


CAUSAL, SCALE = ("causal", "is_causal"), ("scale", "sm_scale", "softmax_scale")
"""Names of arguments that profiles of inputs have fields for."""


def argument_named(client: Client, call: Call, names: Sequence[str]) -> Any:
    """The argument of a call that has one of these names, static or a number; None where there is none."""
    named = dict(zip(client.paths, call.values, strict=True))
    static = [name for name in client.signature.parameters if name not in client.paths]
    named |= zip(static, client.static_values(call), strict=True)
    return next((named[name] for name in names if name in named and not isinstance(named[name], Tensor)), None)


def facts_of(paths: Sequence[str], described: Described) -> dict[str, Number]:
    """The values of all facts about a call, by words."""
    found: dict[str, Number] = {}
    for path, one in zip(paths, described, strict=True):
        if not isinstance(one, Meta):
            found[path] = one
            continue
        found.update((f"{path}.size[{axis}]", size) for axis, size in enumerate(one.shape))
        found.update((f"{path}.stride[{axis}]", stride) for axis, stride in enumerate(one.strides))
    return found
