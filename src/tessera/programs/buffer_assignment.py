"""Buffer assignment: a host program for arrays of given sizes, with the piece of memory that each array lies in.

A piece of memory belongs to an argument, a result, a constant or a temporary array, or its address is in a variable:
what a branch or a loop gives may lie here or there. Views are other sizes and strides on the same piece. Where an array
has to lie elsewhere, or with other strides, it is moved.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np

from tessera.dtypes.types import DType
from tessera.errors import CompileError
from tessera.programs import host
from tessera.runtime.device.memory import contiguous_strides
from tessera.runtime.program.executable import Geometry
from tessera.shapes.expr import dim, evaluator

ARGUMENT, RESULT, CONSTANT, TEMPORARY, VARIABLE = "argument", "result", "constant", "temporary", "variable"


@dataclass
class Piece:
    """A piece of memory. `number` counts those of its kind; `behind` are pieces that a variable may lead to.

    A variable leads to multiples of `grain` bytes after the beginnings of those.
    """

    kind: str
    number: int
    nbytes: int = 0
    data: bytes = b""
    grain: int = 0
    behind: list[int] = field(default_factory=list[int])


class BufferSlice(NamedTuple):
    """The part of a piece of memory that an array has: an offset in bytes, sizes, and strides in elements."""

    piece: int
    offset: int
    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.storage.itemsize

    @property
    def is_plain(self) -> bool:
        """Whether its elements lie one after the other, the last axis fastest."""
        expected = 1
        for count, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if count != 1 and stride != expected and 0 not in self.shape:
                return False
            expected *= count
        return True


class Given(NamedTuple):
    """A number that a call gives: the value that is argument `number`."""

    number: int
    kind: str


class Known(NamedTuple):
    """A number that is known."""

    value: float
    kind: str


Operand: TypeAlias = BufferSlice | Given | Known


class KernelLaunch(NamedTuple):
    """A launch of a kernel on its inputs and outputs."""

    kernel: int
    operands: tuple[Operand, ...]
    outputs: int


class Move(NamedTuple):
    """Copies elements from one buffer to another."""

    target: BufferSlice
    source: BufferSlice


class Draw(NamedTuple):
    """Fills an array with numbers from the stream."""

    target: BufferSlice
    distribution: str


class Load(NamedTuple):
    """Copies the value of a slot."""

    target: BufferSlice
    slot: str


class Save(NamedTuple):
    """Copies an array into a slot."""

    source: BufferSlice
    slot: str


class Show(NamedTuple):
    """Prints an array."""

    label: str
    source: BufferSlice


class Combine(NamedTuple):
    """Combines the arrays of all ranks."""

    target: BufferSlice
    source: BufferSlice
    kind: str
    axis: str


class Assign(NamedTuple):
    """Sets a variable to the address of a buffer."""

    variable: int
    source: BufferSlice


class Choose(NamedTuple):
    """Does one of two lists of acts."""

    test: Operand
    first: tuple[Act, ...]
    second: tuple[Act, ...]


class Along(NamedTuple):
    """In each iteration of a loop, a variable holds the address of the next slice of an array."""

    variable: int
    array: BufferSlice
    step: int


class Repeat(NamedTuple):
    """Does `body` again and again: `trips` times, or as long as the array `test` is true after `check`.

    `swapped` are temporary pieces with two slots each, which iterations use alternately. Counted loops may go
    along arrays, from the last slice on if they are `reversed`.
    """

    check: tuple[Act, ...]
    test: BufferSlice | None
    trips: int | None
    body: tuple[Act, ...]
    swapped: tuple[int, ...]
    along: tuple[Along, ...] = ()
    reversed: bool = False


Act: TypeAlias = KernelLaunch | Move | Draw | Load | Save | Show | Combine | Assign | Choose | Repeat


@dataclass
class BufferAssignment:
    """A program for given sizes: the pieces of memory that it uses, and what it does with them."""

    pieces: list[Piece]
    acts: tuple[Act, ...]
    results: list[BufferSlice]
    arguments: list[BufferSlice | Given]


def assign_buffers(program: host.Host, sizes: Mapping[str, int], given: Sequence[Geometry | None]) -> BufferAssignment:
    """The program for arguments of these sizes and strides; None for numbers."""
    return _Writer(program, sizes).write(given)


class _Writer:
    def __init__(self, program: host.Host, sizes: Mapping[str, int]) -> None:
        self.program = program
        self.sizes = sizes
        self.pieces: list[Piece] = []
        self.operands: dict[int, Operand] = {}
        self.acts: list[Act] = []
        self.has_updates = any(kernel.updates is not None for kernel in program.kernels)
        self.later: set[int] = set()
        """The values that steps behind the one at work name, in its block."""
        self.first_piece = 0
        """The first piece of memory that the block at work has made."""

    def write(self, given: Sequence[Geometry | None]) -> BufferAssignment:
        arguments: list[BufferSlice | Given] = []
        for number, (value, found) in enumerate(zip(self.program.arguments, given, strict=True)):
            described = self.program.values[value]
            if isinstance(described, host.Number):
                operand = Given(number, described.kind)
            else:
                assert found is not None
                operand = BufferSlice(self.piece(ARGUMENT, number), 0, described.dtype, *found)
            arguments.append(operand)
            self.operands[value] = operand
        self.block(self.program.steps, self.program.results)
        results = [self.result(number, self.buffer(value)) for number, value in enumerate(self.program.results)]
        return BufferAssignment(self.pieces, tuple(self.acts), results, arguments)

    def piece(self, kind: str, number: int | None = None, **more: object) -> int:
        if number is None:
            number = sum(piece.kind == kind for piece in self.pieces)
        self.pieces.append(Piece(kind, number, **more))  # pyright: ignore[reportArgumentType]  (as given)
        return len(self.pieces) - 1

    def buffer(self, value: int) -> BufferSlice:
        found = self.operands[value]
        assert isinstance(found, BufferSlice)
        return found

    def shape(self, value: int) -> tuple[int, ...]:
        return evaluator(self.program.array(value).shape)(self.sizes)

    def fresh(self, value: int, kind: str = TEMPORARY) -> BufferSlice:
        """A piece of its own for an array."""
        buffer = self.plain(kind, self.program.array(value).dtype, self.shape(value))
        self.operands[value] = buffer
        return buffer

    def plain(self, kind: str, dtype: DType, shape: tuple[int, ...]) -> BufferSlice:
        nbytes = math.prod(shape) * dtype.storage.itemsize
        return BufferSlice(self.piece(kind, nbytes=nbytes), 0, dtype, shape, contiguous_strides(shape, 1))

    def result(self, number: int, buffer: BufferSlice) -> BufferSlice:
        """The buffer of a result: a whole piece that a kernel fills becomes it, anything else is copied into one."""
        piece = self.pieces[buffer.piece]
        if piece.kind == TEMPORARY and buffer.is_plain and buffer.nbytes == piece.nbytes:
            piece.kind, piece.number = RESULT, number
            return buffer
        target = self.plain(RESULT, buffer.dtype, buffer.shape)
        self.pieces[target.piece].number = number
        self.acts.append(Move(target, buffer))
        return target

    def taken_over(self, value: int, number: int, operands: Sequence[Operand]) -> BufferSlice:
        """The buffer of an array that holds the elements of an operand before: its own, where that is not needed on."""
        source = operands[number]
        assert isinstance(source, BufferSlice)
        piece = self.pieces[source.piece]
        whole = piece.kind == TEMPORARY and source.is_plain and source.nbytes == piece.nbytes
        others = [one for at, one in enumerate(operands) if at != number]
        others += [self.operands[one] for one in self.later if one in self.operands]
        if whole and source.piece >= self.first_piece and not any(_lies_in(one, source.piece) for one in others):
            self.operands[value] = source
            return source
        target = self.fresh(value)
        self.acts.append(Move(target, source))
        return target

    def moved(self, buffer: BufferSlice) -> BufferSlice:
        """A plain copy."""
        target = self.plain(TEMPORARY, buffer.dtype, buffer.shape)
        self.acts.append(Move(target, buffer))
        return target

    def block(self, steps: Sequence[host.Step], results: Sequence[int]) -> None:
        outer = self.later, self.first_piece
        self.first_piece = len(self.pieces)
        later = [set(results)]
        for step in reversed(steps):
            later.append(later[-1].union(host.values_of(step)) if self.has_updates else later[-1])
        for number, step in enumerate(steps, 1):
            self.later = later[-1 - number]
            self.step(step)
        self.later, self.first_piece = outer

    def step(self, step: host.Step) -> None:
        match step:
            case host.Launch(kernel, inputs, outputs):
                operands = [self.operands[value] for value in inputs]
                if (updated := self.program.kernels[kernel].updates) is None:
                    operands += [self.fresh(value) for value in outputs]
                else:
                    operands[updated] = self.taken_over(outputs[0], updated, operands)
                    operands.append(operands[updated])
                self.acts.append(KernelLaunch(kernel, tuple(operands), len(outputs)))
            case host.ConstantArray(value, data):
                self.constant(value, data)
            case host.Literal(value, number):
                kind = self.program.values[value]
                assert isinstance(kind, host.Number)
                self.operands[value] = Known(number, kind.kind)
            case host.ArrayView(value, source, how, numbers):
                self.view(value, self.buffer(source), how, numbers)
            case host.Random(value, distribution):
                self.acts.append(Draw(self.fresh(value), distribution))
            case host.ReadState(value, slot):
                self.acts.append(Load(self.fresh(value), slot))
            case host.WriteState(value, slot):
                self.acts.append(Save(self.buffer(value), slot))
            case host.Print(label, value):
                self.acts.append(Show(label, self.buffer(value)))
            case host.AllReduce(value, source, kind, axis):
                self.acts.append(Combine(self.fresh(value), self.buffer(source), kind, axis))
            case host.Branch(test, blocks, values):
                self.branch(test, blocks, values)
            case host.Loop():
                self.loop(step)

    def constant(self, value: int, data: bytes) -> None:
        """One element that fills an array is stored once, and its strides are 0."""
        array, shape = self.program.array(value), self.shape(value)
        strides = contiguous_strides(shape, 1)
        if len(data) == array.dtype.storage.itemsize and math.prod(shape) != 1:
            strides = (0,) * len(shape)
        piece = self.piece(CONSTANT, nbytes=len(data), data=data)
        self.operands[value] = BufferSlice(piece, 0, array.dtype, shape, strides)

    def view(self, value: int, source: BufferSlice, how: str, numbers: tuple[int, ...]) -> None:
        """A view of an array, by sizes and strides."""
        shape, dtype = self.shape(value), self.program.array(value).dtype
        if how == "reshape":
            buffer = self.reshaped(source, shape)
        elif how == "transpose":
            strides = tuple([source.strides[axis] for axis in numbers])
            buffer = source._replace(shape=shape, strides=strides)
        elif how == "slice":
            rank = len(source.shape)
            bounds = zip(numbers[:rank], numbers[rank : 2 * rank], numbers[2 * rank :], source.shape, strict=True)
            ranges = [range(*slice(*bound).indices(count)) for *bound, count in bounds]
            first = sum(one.start * stride for one, stride in zip(ranges, source.strides, strict=True) if one)
            strides = tuple([one.step * stride for one, stride in zip(ranges, source.strides, strict=True)])
            offset = source.offset + (first * dtype.storage.itemsize if all(shape) else 0)
            buffer = source._replace(offset=offset, shape=shape, strides=strides)
        elif how == "broadcast":
            lead = len(shape) - len(source.shape)
            kept = zip(source.shape, source.strides, shape[lead:], strict=True)
            strides = (0,) * lead + tuple([stride if count == wanted else 0 for count, stride, wanted in kept])
            buffer = source._replace(shape=shape, strides=strides)
        else:
            raise CompileError(f"a view by {how} is none that the host knows")
        self.operands[value] = buffer._replace(dtype=dtype)

    def reshaped(self, source: BufferSlice, shape: tuple[int, ...]) -> BufferSlice:
        """Other sizes of the same elements: a copy where no strides describe them."""
        plain = contiguous_strides(shape, 1)
        if source.is_plain:
            return source._replace(shape=shape, strides=plain)
        itemsize = source.dtype.storage.itemsize
        steps = tuple(stride * itemsize for stride in source.strides)
        # NumPy knows which strides there are; this address is never read.
        whole = np.lib.stride_tricks.as_strided(np.empty(1, f"V{itemsize}"), source.shape, steps)
        try:
            found = whole.reshape(shape, copy=False)
        except ValueError:
            return self.moved(source)._replace(shape=shape, strides=plain)
        return source._replace(shape=shape, strides=tuple(stride // itemsize for stride in found.strides))

    # Control flow

    def inside(self, block: host.Block, given: Sequence[Operand]) -> tuple[list[Act], list[Operand]]:
        """The acts of a block that takes these, and what it gives."""
        outer, self.acts = self.acts, []
        for value, operand in zip(block.arguments, given, strict=True):
            self.operands[value] = operand
        self.block(block.steps, block.results)
        made, self.acts = self.acts, outer
        return made, [self.operands[value] for value in block.results]

    def variable(self, value: int) -> BufferSlice:
        """A piece whose address is in a variable."""
        return self.fresh(value, VARIABLE)

    def settled(self, acts: list[Act], operand: Operand, variable: BufferSlice) -> None:
        """Ends a block: what it gives becomes what a variable leads to, moved if it does not lie plainly."""
        assert isinstance(operand, BufferSlice)
        buffer = operand
        if not buffer.is_plain or (self.pieces[buffer.piece].kind == CONSTANT and buffer.shape):
            outer, self.acts = self.acts, acts
            buffer = self.moved(buffer)
            self.acts = outer
        piece = self.pieces[variable.piece]
        piece.behind.append(buffer.piece)
        piece.grain = math.gcd(piece.grain, buffer.offset)
        acts.append(Assign(variable.piece, buffer))

    def branch(self, test: int, blocks: tuple[host.Block, host.Block], values: tuple[int, ...]) -> None:
        asked = self.operands[test]
        made = [self.inside(block, ()) for block in blocks]
        variables = [self.variable(value) for value in values]
        for acts, results in made:
            for operand, variable in zip(results, variables, strict=True):
                self.settled(acts, operand, variable)
        self.acts.append(Choose(asked, tuple(made[0][0]), tuple(made[1][0])))

    def loop(self, step: host.Loop) -> None:
        variables = [self.variable(value) for value in step.values]
        for value, variable in zip(step.start, variables, strict=True):
            self.settled(self.acts, self.operands[value], variable)
        check: list[Act] = []
        test: Operand | None = None
        if step.test is not None:
            check, (test,) = self.inside(step.test, variables)
            assert isinstance(test, BufferSlice)
        along: list[Along] = []
        slices = [self.slice_of(self.buffer(value), along) for value in step.sliced]
        body, results = self.inside(step.body, [*variables, *slices])
        swapped: list[int] = []
        ends: list[Act] = []
        for given, variable in zip(results, variables, strict=False):
            assert isinstance(given, BufferSlice)
            if given == variable:
                continue  # it stays as it is
            buffer = given
            # Results of two iterations are alive at once: those made by an iteration have two slots, others are copied.
            if not self.made_in(body, buffer) or buffer.piece in swapped:
                buffer = self.plain(TEMPORARY, buffer.dtype, buffer.shape)
                body.append(Move(buffer, given))
            swapped.append(buffer.piece)
            self.pieces[variable.piece].behind.append(buffer.piece)
            ends.append(Assign(variable.piece, buffer))
        for value, given in zip(step.stacked, results[len(variables) :], strict=True):
            assert isinstance(given, BufferSlice)
            whole = self.fresh(value)
            # What an iteration makes for its slice only is made right in the slice.
            if self.made_in(body, given) and given.piece not in swapped:
                self.lead_along(given.piece, whole, along)
                swapped.append(given.piece)
            else:
                body.append(Move(self.slice_of(whole, along), given))
        trips = None if step.trips is None else dim(step.trips).evaluate(self.sizes)
        alternating = [piece for piece in swapped if self.pieces[piece].kind == TEMPORARY]
        self.acts.append(
            Repeat(tuple(check), test, trips, (*body, *ends), tuple(alternating), tuple(along), step.reverse)
        )

    def made_in(self, acts: Sequence[Act], buffer: BufferSlice) -> bool:
        """Whether acts fill the piece of a buffer, and the buffer is all of it."""
        piece = self.pieces[buffer.piece]
        whole = piece.kind == TEMPORARY and buffer.is_plain and buffer.nbytes == piece.nbytes
        return whole and buffer.piece in _written(acts)

    def slice_of(self, whole: BufferSlice, along: list[Along]) -> BufferSlice:
        """The slice of an array that an iteration of a loop works on."""
        piece = self.piece(VARIABLE)
        self.lead_along(piece, whole, along)
        return BufferSlice(piece, 0, whole.dtype, whole.shape[1:], whole.strides[1:])

    def lead_along(self, number: int, whole: BufferSlice, along: list[Along]) -> None:
        step = whole.strides[0] * whole.dtype.storage.itemsize
        piece = self.pieces[number]
        piece.kind, piece.grain = VARIABLE, math.gcd(step, whole.offset)
        piece.behind.append(whole.piece)
        along.append(Along(number, whole, step))


def _lies_in(operand: Operand, piece: int) -> bool:
    return isinstance(operand, BufferSlice) and operand.piece == piece


def _written(acts: Sequence[Act]) -> set[int]:
    """The pieces that these acts fill, by themselves."""
    return {buffer.piece for act in acts for buffer in writes_of(act)}


def writes_of(act: Act) -> list[BufferSlice]:
    """The buffers that an act writes."""
    match act:
        case KernelLaunch(_, operands, outputs):
            return [one for one in operands[len(operands) - outputs :] if isinstance(one, BufferSlice)]
        case Move(target) | Draw(target) | Load(target) | Combine(target):
            return [target]
        case _:
            return []


def reads_of(act: Act) -> list[BufferSlice]:
    """The buffers that an act reads."""
    match act:
        case KernelLaunch(_, operands, outputs):
            return [one for one in operands[: len(operands) - outputs] if isinstance(one, BufferSlice)]
        case Move(_, source) | Save(source) | Show(_, source) | Combine(_, source) | Assign(_, source):
            return [source]
        case Choose(test):
            return [test] if isinstance(test, BufferSlice) else []
        case _:
            return []


def inner_of(act: Act) -> tuple[tuple[Act, ...], ...]:
    """The lists of acts inside of one."""
    match act:
        case Choose(_, first, second):
            return first, second
        case Repeat(check, _, _, body):
            return check, body
        case _:
            return ()
