"""The Python code of a call of a bound program, written for it: addresses are taken and kernels are launched.

Launches that follow each other are one call of machine code (runtime/native/sequence.py), on either device. What the
devices do differently, a `Site` says: memory, what a launch consists of, and copies.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, TypeAlias

from tessera.compiler.launch_plan import Plan
from tessera.programs.buffer_assignment import (
    ARGUMENT,
    CONSTANT,
    RESULT,
    TEMPORARY,
    Act,
    Assign,
    BufferAssignment,
    BufferSlice,
    Choose,
    Combine,
    Draw,
    Given,
    KernelLaunch,
    Known,
    Load,
    Move,
    Operand,
    Repeat,
    Save,
    Show,
)
from tessera.programs.memory_plan import Plan as MemoryPlan
from tessera.runtime.device.memory import data_address
from tessera.runtime.device.ownership import taken
from tessera.runtime.native import sequence
from tessera.runtime.tensor.meta import Meta
from tessera.runtime.tensor.tensor import Tensor
from tessera.shapes.tracked import is_tracked, made, plain

_PACKING = {"i64": "<q", "f32": "<f4x", "f64": "<d", "i1": "<?7x"}


class Extra(NamedTuple):
    """A word of a launch that is no argument: the value of a Python expression, of a kind that launches know.

    `added` is added to it.
    """

    text: str
    kind: str
    added: int = 0


Source: TypeAlias = Operand | Extra


class Prepared(NamedTuple):
    """A launch: machine code, its args block, and the sources of its bytes. `plan` says what failures mean.

    `params` is how many bytes of the args block are the params block of a GPU's kernel.
    """

    entry: int
    template: bytes
    fills: tuple[tuple[int, Source], ...]
    scratch: int
    threads: int
    plan: Plan
    keep: object
    params: int = 0
    open: tuple[tuple[int, int], ...] = ()
    """Words of the args block whose numbers are tracked: at which byte, and the number."""


class Site(Protocol):
    """The parts of a call that each kind of device has of its own."""

    def prepared(self, writer: Writer, run: KernelLaunch) -> Prepared | None:
        """A launch for a sequence, after lines that it needs; None where there is nothing to do, or lines did it."""
        ...

    def begin(self, writer: Writer) -> None:
        """Lines at the beginning of a call: the arena and the results."""
        ...

    def grouped(self, writer: Writer, prepared: Sequence[Prepared]) -> Sequence[Prepared]:
        """The launches that a sequence runs instead of those that follow each other."""
        ...

    def after(self, writer: Writer, prepared: Sequence[Prepared]) -> None:
        """Lines after a sequence of launches."""
        ...

    def end(self, writer: Writer) -> None:
        """Lines at the end of a call."""
        ...

    def constant(self, data: bytes) -> int:
        """The address of bytes that never change."""
        ...

    def meta(self, buffer: BufferSlice) -> Meta:
        """The meta of a result."""
        ...

    def arena_text(self) -> tuple[str, str]:
        """The arena: as launches take it, with its kind."""
        ...

    def act(self, act: Move | Draw | Load | Save | Show | Combine) -> Callable[..., None]:
        """A function of the addresses of the act's buffers (its target first) that does it."""
        ...

    def truth(self, buffer: BufferSlice) -> Callable[..., bool]:
        """A function that reads whether an element at an address is true."""
        ...

    @property
    def fail(self) -> Callable[..., None]:
        """Raises the error of a status; takes `given`, the plans of a sequence, the status, the sequence and values."""
        ...

    @property
    def given(self) -> str:
        """Names that functions of a site take in front."""
        ...


@dataclass
class Writer:
    """Writes the code of one bound program."""

    buffers: BufferAssignment
    memory: MemoryPlan
    site: Site
    lines: list[str] = field(default_factory=list[str])
    names: dict[str, Any] = field(default_factory=dict[str, Any])
    depth: int = 2
    pending: list[Prepared] = field(default_factory=list[Prepared])

    def __post_init__(self) -> None:
        self.offsets: Mapping[int, list[int]] = self.memory.offsets()
        self.homes: Mapping[int, int] = self.memory.homes()
        self.alternating: set[int] = set()
        self.made: set[int] = set()
        """Results that are tensors from the beginning."""
        self.looping = 0
        """How many loops are around what is written."""

    def write(self) -> Callable[..., tuple[Tensor, ...]]:
        """The function."""
        inputs = [f"v{index}" for index in range(len(self.buffers.arguments))]
        self.site.begin(self)
        self.acts(self.buffers.acts)
        self.flush()
        self.site.end(self)
        self.line(f"return ({''.join(f'{self.tensor(number)}, ' for number in range(len(self.buffers.results)))})")
        # Names are defaults of parameters: a tuple, where cells of a closure would be objects of their own.
        known = [f"{name}={name}" for name in self.names]
        text = f"def make({', '.join(self.names)}):\n    def run({', '.join([*inputs, *known])}):\n"
        text += "\n".join(self.lines) + "\n    return run\n"
        return made(_Text(text, self.site).filled, *self.names.values())

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def name(self, what: str, value: Any) -> str:
        """A name for an object that the code uses."""
        name = f"{what}{len(self.names)}"
        self.names[name] = value
        return name

    # Addresses

    def argument(self, number: int) -> str:
        """An argument as launches take it."""
        found = self.buffers.arguments[number]
        return f"v{number}.geometry" if isinstance(found, BufferSlice) else f"v{number}"

    def source(self, operand: Source) -> tuple[str, str, int]:
        """The argument for an operand: an expression, its kind, and how many bytes after it the operand is."""
        if isinstance(operand, Given):
            return f"v{operand.number}", operand.kind, 0
        if isinstance(operand, Extra):
            return operand.text, operand.kind, operand.added
        assert isinstance(operand, BufferSlice)
        piece = self.buffers.pieces[operand.piece]
        if piece.kind == ARGUMENT:
            return self.argument(piece.number), "array", operand.offset
        if piece.kind == RESULT:
            return f"r{piece.number}", "array", operand.offset
        if piece.kind == TEMPORARY:
            if operand.piece in self.alternating:
                return f"s{operand.piece}", "i64", operand.offset
            if (home := self.homes.get(operand.piece)) is not None:
                lender = self.buffers.pieces[home].number
                return f"r{lender}", "array", self.offsets[operand.piece][0] + operand.offset
            return (*self.site.arena_text(), self.offsets[operand.piece][0] + operand.offset)
        return f"c{operand.piece}", "i64", operand.offset

    def known(self, buffer: BufferSlice) -> int | None:
        """The address of a buffer that never moves: of constants, and some valid one for arrays without elements."""
        piece = self.buffers.pieces[buffer.piece]
        if piece.kind == CONSTANT:
            return self.site.constant(piece.data) + buffer.offset
        is_nowhere = piece.kind == TEMPORARY and buffer.piece not in self.offsets
        return self.site.constant(b"") if is_nowhere else None

    def address(self, buffer: BufferSlice) -> str:
        """The address of a buffer, as an expression."""
        if (known := self.known(buffer)) is not None:
            return self.number(known)
        text, kind, added = self.source(buffer)
        if kind == "array":
            text = f"{self.helper('address', data_address)}({text})"
        return f"{text} + {self.number(added)}"

    def number(self, value: int) -> str:
        """A number that depends on sizes or addresses: a name in the code, which is the same for all of them."""
        return self.name("number", value)

    def helper(self, name: str, value: Any) -> str:
        """An object under a name of its own."""
        self.names.setdefault(name, value)
        return name

    def result(self, number: int, buffer: BufferSlice, fresh: str, where: str = "", *, whole: bool = False) -> None:
        """Lines that make the memory of a result, or take that of an argument, if they may, and `where` holds.

        `fresh` gives an array, or the `whole` tensor.
        """
        donor = self.memory.donors.get(buffer.piece)
        if donor is None and whole:
            self.made.add(number)
            self.line(f"t{number} = {fresh}")
            self.line(f"r{number} = t{number}.geometry")
            return
        fresh = f"{fresh}.geometry" if whole else fresh
        if donor is None:
            self.line(f"r{number} = {fresh}")
            return
        others = [
            f"v{donor} is not v{other}"
            for other, one in enumerate(self.buffers.arguments)
            if isinstance(one, BufferSlice) and other != donor
        ]
        shape, storage = self.name("shape", buffer.shape), self.name("storage", buffer.dtype.storage)
        take = f"{self.helper('taken', taken)}(v{donor}, {shape}, {storage})"
        tests = " and ".join([*([where] if where else []), *others])
        self.line(f"r{number} = {take} if {tests} else None" if tests else f"r{number} = {take}")
        self.line(f"if r{number} is None:")
        self.line(f"    r{number} = {fresh}")

    def meta(self, number: int) -> str:
        """The meta of a result."""
        name = f"meta{number}"
        if name not in self.names:
            self.names[name] = self.site.meta(self.buffers.results[number])
        return name

    def tensor(self, number: int) -> str:
        """A result as a call gives it."""
        if number in self.made:
            return f"t{number}"
        return f"{self.helper('tensor', Tensor.fresh)}(r{number}, {self.meta(number)})"

    # Acts

    def acts(self, acts: Sequence[Act]) -> None:
        for act in acts:
            if isinstance(act, KernelLaunch):
                prepared = self.site.prepared(self, act)
                if prepared is not None:
                    self.pending.append(prepared)
                continue
            self.flush()
            self.act(act)

    def act(self, act: Act) -> None:
        match act:
            case Assign(variable, source):
                self.line(f"c{variable} = {self.address(source)}")
            case Choose(test, first, second):
                self.line(f"if {self.test(test)}:")
                self.inside(first)
                self.line("else:")
                self.inside(second)
            case Repeat():
                self.repeat(act)
            case Move(target, source) | Combine(target, source):
                self.call(act, target, source)
            case Draw(target) | Load(target):
                self.call(act, target)
            case Save(source) | Show(_, source):
                self.call(act, source)
            case KernelLaunch():
                raise AssertionError(act)

    def call(self, act: Move | Draw | Load | Save | Show | Combine, *operands: BufferSlice) -> None:
        done = self.name("act", self.site.act(act))
        self.line(f"{done}({self.site.given}{', '.join(self.address(one) for one in operands)})")

    def test(self, operand: Operand) -> str:
        if isinstance(operand, Known):
            return str(bool(operand.value))
        if isinstance(operand, Given):
            return f"v{operand.number}"
        return f"{self.name('truth', self.site.truth(operand))}({self.site.given}{self.address(operand)})"

    def inside(self, acts: Sequence[Act], *more: str) -> None:
        self.depth += 1
        start = len(self.lines)
        self.acts(acts)
        self.flush()
        for line in more:
            self.line(line)
        if len(self.lines) == start:
            self.line("pass")
        self.depth -= 1

    def repeat(self, act: Repeat) -> None:
        """A loop. Iterations write to two buffers alternately: `s` is the address for this one, `o` the other."""
        pairs = [piece for piece in act.swapped if len(self.offsets.get(piece, ())) > 1]
        for piece in pairs:
            text, kind = self.site.arena_text()
            base = f"{self.helper('address', data_address)}({text})" if kind == "array" else text
            first, second = self.offsets[piece]
            self.line(f"s{piece} = {base} + {self.number(first)}")
            self.line(f"o{piece} = {base} + {self.number(second)}")
        self.alternating |= set(pairs)
        self.looping += 1
        swaps = [f"s{piece}, o{piece} = o{piece}, s{piece}" for piece in pairs]
        if act.trips is not None:
            trips = self.number(act.trips)
            bounds = f"{trips} - 1, -1, -1" if act.reversed else trips
            self.line(f"for iteration in range({bounds}):")
            for one in act.along:
                self.line(f"    c{one.variable} = {self.address(one.array)} + iteration * {self.number(one.step)}")
            self.inside(act.body, *swaps)
        else:
            assert act.test is not None
            self.line("while True:")
            self.inside(act.check, f"if not {self.test(act.test)}:", "    break")
            self.inside(act.body, *swaps)
        self.looping -= 1
        self.alternating -= set(pairs)

    def flush(self) -> None:
        """One call for all launches that wait for it."""
        waiting, self.pending = self.pending, []
        if not waiting:
            return
        prepared = self.site.grouped(self, waiting)
        values: dict[tuple[str, str], int] = {}
        steps = [self.step(one, values) for one in prepared]
        kinds = [kind for _, kind in values]
        run = self.name("run", sequence.make(steps, kinds, keep=[one.keep for one in prepared]))
        plans = self.name("plans", tuple(one.plan for one in prepared))
        passed = "".join(f"{text}, " for text, _ in values)
        numbers = any(kind not in ("array",) for kind in kinds)
        self.line("try:")
        self.line(f"    status = {run}({passed})")
        self.line("except (OverflowError, MemoryError) as error:")
        explain = self.helper("explain", _explain)
        self.line(f"    {explain}({plans}, ({passed if numbers else ''}), {tuple(kinds) if numbers else ()}, error)")
        self.line("if status != 0:")
        self.line(f"    {self.helper('fail', self.site.fail)}({self.site.given}{plans}, status, {run}, ({passed}))")
        self.site.after(self, prepared)

    def step(self, prepared: Prepared, values: dict[tuple[str, str], int]) -> sequence.Step:
        """A step of a sequence; values that it needs of a call are added to those that others need."""
        template = bytearray(prepared.template)
        fields: list[sequence.Field] = []
        opened = list(prepared.open)
        for offset, operand in prepared.fills:
            if isinstance(operand, Known):
                struct.pack_into(_PACKING[operand.kind], template, offset, operand.value)
                continue
            if isinstance(operand, BufferSlice) and (known := self.known(operand)) is not None:
                struct.pack_into("<Q", template, offset, plain(known))
                if is_tracked(known):
                    opened.append((offset, known))
                continue
            text, kind, added = self.source(operand)
            value = values.setdefault((text, kind), len(values))
            fields.append(sequence.Field(offset, value, added))
        return sequence.Step(
            prepared.entry, bytes(template), tuple(fields), prepared.scratch, prepared.threads, tuple(opened)
        )


class _Text(NamedTuple):
    """The code of a call, but for the objects that it names."""

    text: str
    site: Site

    def filled(self, *named: Any) -> Callable[..., Any]:
        """The function."""
        run = _maker(self.text)(*named)
        run.text = self.text
        run.site = self.site  # it keeps constants, whose addresses are in the code
        return run


@lru_cache(maxsize=256)
def _maker(text: str) -> Callable[..., Any]:
    """The function that a text defines. Numbers that depend on sizes are not in texts, so that other sizes find it."""
    scope: dict[str, Any] = {"__name__": __name__}
    exec(text, scope)
    return scope["make"]


def _explain(plans: Sequence[Plan], values: Sequence[Any], kinds: Sequence[str], error: Exception) -> None:
    """Raises the error of a call that did not get as far as its kernels."""
    from tessera.errors import DtypeError, ResourceError

    if isinstance(error, MemoryError):
        names = ", ".join(f"@{plan.name}" for plan in plans)
        raise ResourceError(
            f"{names}: scratch memory cannot be had", hint="use fewer threads or smaller blocks"
        ) from None
    for value, kind in zip(values, kinds, strict=True):
        if kind == "i64" and not -(1 << 63) <= value < 1 << 63:
            raise DtypeError(
                f"expected a number of i64, got {value!r}",
                hint=f"give one whole number from {-(1 << 63)} to {(1 << 63) - 1}",
            ) from None
    raise error
