"""Compiled kernels behind guards: the arguments that they serve, their machine code, and their form on the disk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from tessera.compiler.launch_plan import Plan
from tessera.compiler.target import target_named
from tessera.runtime.cache import store as cache
from tessera.runtime.program.executable import Executable
from tessera.runtime.tensor.tensor import Tensor
from tessera.tile.calls.arguments import NUMBERS, Number, collect, kinds_of
from tessera.tile.calls.assumptions import guards_of
from tessera.tile.calls.guards import Ask, Guard, row_answer
from tessera.tile.calls.instance import Instance
from tessera.tile.calls.interpreting import interpret
from tessera.tile.calls.settings import Settings
from tessera.tile.language.schedule import Schedule
from tessera.transforms.core.compile_report import CompileReport
from tessera.transforms.core.facts import Fact, FactKind

if TYPE_CHECKING:
    from tessera.runtime.cuda.executable import CudaExecutable


_NUMBERS: dict[str, type] = {kind.__name__: kind for kind in (bool, int, float)}


@dataclass(frozen=True, eq=False)
class GuardedKernel:
    """A kernel compiled for one instance of it, and where its arguments come from; see `instance.Instance`.

    `guards` are the sizes, strides and numbers that it depends on. Without machine code, the interpreter runs the
    instance.
    """

    paths: tuple[str, ...]
    kinds: tuple[object, ...]
    guards: tuple[Guard, ...]
    schedule: Schedule
    row_width: int | None
    executable: Executable | CudaExecutable | None
    instance: Instance | None = None
    report: CompileReport = field(default_factory=CompileReport)
    """The way it was compiled, and those that were refused."""
    target: str = "cpu"

    @staticmethod
    def of(
        instance: Instance,
        executable: Executable | CudaExecutable | None,
        asked: Iterable[Fact] = (),
        lines: Mapping[int, int] | None = None,
    ) -> GuardedKernel:
        """The program of an instance, by the interpreter where there is no machine code.

        `asked` are facts that it depends on besides those that its trace asked for, `lines` how rows lie, if it does.
        """
        guards = tuple(map(_guard, guards_of(instance, asked)))
        rows = {argument: row_answer(axis) for argument, axis in (lines or {}).items()}
        guards += tuple(Guard(Ask(argument, "row_aligned", 0), answer) for argument, answer in rows.items())
        kept = None if executable is not None else instance
        return GuardedKernel(
            instance.paths, instance.kinds, guards, instance.schedule, instance.row_width, executable, kept
        )

    def values_for(self, given: Mapping[str, Any]) -> list[Any] | None:
        """The arguments of the program, if it serves these."""
        values = collect(self.paths, given)
        return values if kinds_of(values) == self.kinds and self.serves(values) else None

    def serves(self, values: Sequence[Any]) -> bool:
        """Whether it is right for values of its kinds."""
        return all(guard.holds(values) for guard in self.guards)

    def run(self, values: Sequence[Any], chosen: Settings) -> Any:
        """Runs the program once."""
        if self.executable is None:
            return self.interpreted(values)
        arrays = [value.geometry if isinstance(value, Tensor) else value for value in values]
        return self.executable.bind(arrays, deterministic=chosen.deterministic)(*arrays)

    def interpreted(self, values: Sequence[Any]) -> Any:
        """Runs a program that has no machine code."""
        assert self.instance is not None
        return interpret(self.instance, values)

    def encoded(self, code: bytes) -> bytes:
        """The program as bytes, its machine code behind.

        Without any, it only says which arguments it serves, and something else may stand there.
        """
        head = {
            "paths": self.paths,
            "kinds": [kind_text(kind) for kind in self.kinds],
            "guards": self.guards,
            "schedule": asdict(self.schedule),
            "row_width": self.row_width,
            "report": self.report.encoded(),
            "target": self.target,
            "plan": None if self.executable is None else self.executable.plan.encoded(),
        }
        return cache.packed(head, code)

    @staticmethod
    def behind(data: bytes) -> bytes:
        """The bytes behind the JSON of a program that could be decoded."""
        return cache.unpacked(data)[1]

    @staticmethod
    def decoded(data: bytes) -> GuardedKernel | None:
        """A program as `encoded` wrote it; None where it cannot be read."""
        try:
            found, code = cache.unpacked(data)
            block = found["schedule"].pop("block")
            return GuardedKernel(
                tuple(found["paths"]),
                tuple(map(_kind_of, found["kinds"])),
                tuple(Guard(ask_of(ask), _number_of(answer)) for ask, answer in found["guards"]),
                Schedule(block=None if block is None else tuple(block), **found["schedule"]),
                found["row_width"],
                None if found["plan"] is None else loaded(Plan.decoded(found["plan"]), code, found["target"]),
                report=CompileReport.decoded(found["report"]),
                target=found["target"],
            )
        except cache.UNREADABLE:
            return None


def loaded(plan: Plan, code: bytes, target: str) -> Any:
    """A program of a target, ready to run."""
    return target_named(target).load(plan, code)


def kind_text(kind: Any) -> object:
    """The kind of an argument as JSON and keys have it: the name of a number's type, or the rank and type of arrays."""
    return kind.__name__ if isinstance(kind, type) else kind


def _kind_of(text: Any) -> object:
    return _NUMBERS[text] if isinstance(text, str) else (int(text[0]), str(text[1]))


def ask_of(found: Any) -> Ask:
    """A question of a program about its arguments, from JSON."""
    argument, what, axis = found
    if what not in ("size", "stride", "value", "row_aligned", "alike"):
        raise ValueError(what)
    return Ask(int(argument), what, int(axis))


def _number_of(found: Any) -> Number:
    if type(found) not in NUMBERS:
        raise ValueError(found)
    return found


def _guard(atom: Fact) -> Guard:
    """The guard that `arg0.size[1] = 64`, `arg0.stride[1] = 1`, `arg2 = 0.5` or `arg0.size[1] = arg1.size[1]` is."""
    assert atom.kind in (FactKind.SIZE, FactKind.STRIDE, FactKind.VALUE, FactKind.EQUAL), atom
    if atom.kind is FactKind.EQUAL:  # with the first array, which the other one is behind
        (argument, axis), _ = sorted((_size_of(atom.subject), _size_of(str(atom.value))), reverse=True)
        return Guard(Ask(argument, "alike", axis), True)
    assert not isinstance(atom.value, str)
    argument, _, measure = atom.subject.partition(".")
    what, _, axis = measure.removesuffix("]").partition("[")
    return Guard(Ask(int(argument.removeprefix("arg")), what or "value", int(axis or 0)), atom.value)


def _size_of(measure: str) -> tuple[int, int]:
    """The number of the argument and the axis of `arg1.size[2]`."""
    argument, _, axis = measure.removesuffix("]").partition(".size[")
    return int(argument.removeprefix("arg")), int(axis)
