"""Host programs: the steps of a graph function around its kernels, as plain data.

Values are numbered; an array has an element type and sizes that are expressions over the arguments' sizes. Steps name
the values that they take and make. All of it goes to JSON and back, for the compile cache; reading it needs neither the
IR nor LLVM.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

from tessera.dtypes.types import BY_NAME, DType, Policy
from tessera.errors import SourceSpan
from tessera.shapes.expr import Shape, dim, size


@dataclass(frozen=True)
class Array:
    """An array of a program."""

    dtype: DType
    shape: Shape


@dataclass(frozen=True)
class Number:
    """A number of a program, of a kind that launches know."""

    kind: str


Value: TypeAlias = Array | Number


@dataclass(frozen=True)
class Launch:
    """Runs a kernel: its inputs, then its outputs."""

    kernel: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True)
class ConstantArray:
    """Makes an array of known elements; a single element fills all of it."""

    value: int
    data: bytes


@dataclass(frozen=True)
class Literal:
    """Makes a known number."""

    value: int
    number: float


@dataclass(frozen=True)
class ArrayView:
    """An array of another array's elements by other sizes and strides; a copy only where no strides describe it.

    how: reshape (no numbers), transpose (the permutation), slice (starts, stops, steps) or broadcast (no numbers).
    """

    value: int
    source: int
    how: str
    numbers: tuple[int, ...] = ()


@dataclass(frozen=True)
class Random:
    """Fresh numbers from the program's stream."""

    value: int
    distribution: str


@dataclass(frozen=True)
class ReadState:
    """Reads the value of a slot."""

    value: int
    slot: str


@dataclass(frozen=True)
class WriteState:
    """Puts an array into a slot."""

    value: int
    slot: str


@dataclass(frozen=True)
class Print:
    """Prints an array."""

    label: str
    value: int


@dataclass(frozen=True)
class AllReduce:
    """Combines the arrays of all ranks of a mesh axis."""

    value: int
    source: int
    kind: str
    axis: str


@dataclass(frozen=True)
class Block:
    """Steps inside of others: they take `arguments` and give `results`."""

    arguments: tuple[int, ...]
    steps: tuple[Step, ...]
    results: tuple[int, ...]


@dataclass(frozen=True)
class Branch:
    """Runs one of two blocks, as a number or an array without axes says; both give such values."""

    test: int
    blocks: tuple[Block, Block]
    values: tuple[int, ...]


@dataclass(frozen=True)
class Loop:
    """Runs `body` repeatedly, first on `start`, then on its last results, which are `values` in the end.

    It goes on as long as `test` gives true; without one, it takes so many `trips`. Then the body also takes one slice
    of each of `sliced` along their first axis, and gives one of each of `stacked`; `reverse` begins with the last.
    """

    start: tuple[int, ...]
    body: Block
    values: tuple[int, ...]
    test: Block | None = None
    trips: str | None = None
    sliced: tuple[int, ...] = ()
    stacked: tuple[int, ...] = ()
    reverse: bool = False


Step: TypeAlias = (
    Launch | ConstantArray | Literal | ArrayView | Random | ReadState | WriteState | Print | AllReduce | Branch | Loop
)


@dataclass(frozen=True)
class Slot:
    """A state slot: it outlives calls, and holds zeros until it is written."""

    name: str
    dtype: DType
    shape: Shape


@dataclass(frozen=True)
class Kernel:
    """A kernel of a program: its name, what identifies its tile function, and what its schedule says of threads.

    `span` is the source that it was written for. Its result may have the memory of an input of which it is `in_place`,
    and holds the elements of the input that it `updates` before.
    """

    name: str
    hash: str
    warps: int | None = None
    stages: int | None = None
    span: SourceSpan | None = None
    in_place: tuple[int, ...] = ()
    updates: int | None = None


@dataclass(frozen=True)
class Host:
    """A whole program. `arguments` and `results` are values, in order."""

    name: str
    values: tuple[Value, ...]
    arguments: tuple[int, ...]
    steps: tuple[Step, ...]
    results: tuple[int, ...]
    kernels: tuple[Kernel, ...] = ()
    slots: tuple[Slot, ...] = ()

    def array(self, value: int) -> Array:
        """The array of a value that is one."""
        found = self.values[value]
        assert isinstance(found, Array)
        return found

    @property
    def launches(self) -> list[Launch]:
        """All launches in order, those inside of other steps too."""
        return [step for step in walk(self.steps) if isinstance(step, Launch)]

    def encoded(self) -> dict[str, Any]:
        """As JSON has it."""
        return encode(self)

    @staticmethod
    def decoded(found: Mapping[str, Any]) -> Host:
        """As `encoded` wrote it; KeyError, TypeError or ValueError where it did not."""
        if found["is"] != "Host":
            raise TypeError(found["is"])
        return decode(dict(found))


def walk(steps: Sequence[Step]) -> Iterator[Step]:
    """All steps in order, each in front of those inside of it."""
    for step in steps:
        yield step
        for block in blocks_of(step):
            yield from walk(block.steps)


def values_of(step: Step) -> Iterator[int]:
    """The values that a step names, those of steps inside of it too."""
    for one in walk([step]):
        for field in fields(one):
            found = getattr(one, field.name) if field.name in _VALUES else None
            if found is not None and not isinstance(found, Block):  # a loop's test is a block
                yield from (found,) if isinstance(found, int) else found
        for block in blocks_of(one):
            yield from block.results


_VALUES = frozenset({"inputs", "outputs", "value", "source", "test", "values", "start", "sliced", "stacked"})
"""Fields of steps that are values."""


def blocks_of(step: Step) -> tuple[Block, ...]:
    """The blocks inside of a step."""
    if isinstance(step, Branch):
        return step.blocks
    if isinstance(step, Loop):
        return (step.body,) if step.test is None else (step.test, step.body)
    return ()


# By the names that they have in files, which stay when a class is renamed.
_CLASSES: Mapping[str, type[Any]] = {
    "Array": Array,
    "Number": Number,
    "Launch": Launch,
    "Constant": ConstantArray,
    "Literal": Literal,
    "View": ArrayView,
    "Random": Random,
    "ReadState": ReadState,
    "WriteState": WriteState,
    "Print": Print,
    "AllReduce": AllReduce,
    "Block": Block,
    "Branch": Branch,
    "Loop": Loop,
    "Slot": Slot,
    "Kernel": Kernel,
    "Host": Host,
}
_NAMES = {kind: name for name, kind in _CLASSES.items()}
_POLICY = tuple(field.name for field in fields(Policy) if field.name != "accum")


def encode(value: Any) -> Any:
    """Parts of host programs as JSON has them; what is nothing else is an expression of sizes."""
    kind = value.__class__
    if kind is SourceSpan:
        parts = [getattr(value, field.name) for field in fields(SourceSpan)]
        return {"is": "span", "of": [encode(part) for part in (parts if value.caller else parts[:-1])]}
    if kind is DType:
        policy = value.policy
        accum = None if policy.accum is None else policy.accum.name
        return {"is": "dtype", "of": [value.name, accum, *(getattr(policy, name) for name in _POLICY)]}
    if kind is bytes:
        return {"is": "bytes", "of": value.hex()}
    if kind is tuple:
        return [encode(one) for one in value]
    if kind in _NAMES:
        return {"is": _NAMES[kind], "of": [encode(getattr(value, field.name)) for field in fields(kind)]}
    if value is None or kind in (bool, int, float, str):
        return value
    return {"is": "size", "of": str(value)}  # an expression


def decode(found: Any) -> Any:
    """As `encode` wrote it; KeyError, TypeError or ValueError where it did not."""
    if found.__class__ is list:
        return tuple([decode(one) for one in found])
    if found.__class__ is not dict:
        return found
    kind, of = found["is"], found["of"]
    if kind == "span":
        return SourceSpan(*(decode(one) for one in of))
    if kind == "dtype":
        name, accum, *rest = of
        return BY_NAME[name].with_policy(Policy(None if accum is None else BY_NAME[accum], *rest))
    if kind == "bytes":
        return bytes.fromhex(of)
    if kind == "size":
        return size(dim(of))
    return _CLASSES[kind](*[decode(one) for one in of])
