"""Machine code for kernels: found in this process or on the disk, or made; and where the interpreter is to run instead.

On the disk a program lies behind two keys. The first is made of all that is known before tracing: the kernel's
fingerprint, its schedule and grid, the kinds of its arguments, the processor and the compiler. It leads to the sizes
that tracing asked for; with their values the first key becomes the second, which leads to the program.
"""

from __future__ import annotations

import json
import os
import struct
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from tessera import knobs
from tessera.dtypes.types import BY_NAME
from tessera.errors import CompileError, DeviceError, TesseraError
from tessera.interpreters.checks import AROUND, NOTHING
from tessera.kernels.arguments import collect, kinds_of
from tessera.kernels.schedule import Schedule
from tessera.kernels.values import CURRENT
from tessera.runtime import cache
from tessera.runtime.build import build
from tessera.runtime.executable import Executable
from tessera.runtime.launch_plan import Plan
from tessera.runtime.tensor import Tensor
from tessera.targets.cpu import features
from tessera.transforms.facts import Fact

if TYPE_CHECKING:
    from tessera.kernels.function import Instance

BACKENDS = ("auto", "cpu", "interpreter")
_MOST_KEYS = 512
_LENGTH = struct.Struct("<Q")
_NUMBERS: dict[str, type] = {kind.__name__: kind for kind in (bool, int, float)}


@dataclass(frozen=True, eq=False)
class Settings:
    """What machine code is made for. `demanded`: a kernel that has none is an error. Equal ones are one object."""

    level: str
    optimization: int
    deterministic: bool
    demanded: bool


# Bound once: every call of a kernel asks them.
_around, _tracer = AROUND.get, CURRENT.get
_state = knobs.watching(knobs.interpret, knobs.backend, knobs.cpu_level, knobs.optimization, knobs.deterministic)
_last: list[tuple[object, Settings | None]] = [(None, None)]


def settings() -> Settings | None:
    """How kernels run here and now; None in the interpreter: it was asked for, or checks and traces were."""
    around = _around()
    if (around is not NOTHING and (around.trace is not None or around.checks)) or _tracer() is not None:
        return None
    state = _state()
    before, found = _last[0]
    if state != before:
        found = _chosen()
        _last[0] = (state, found)
    return found


def _chosen() -> Settings | None:
    backend = knobs.backend.value or "auto"
    if backend not in BACKENDS:
        raise DeviceError(
            f"expected a backend among {', '.join(BACKENDS)}, got {backend!r}",
            hint=f"set {knobs.backend.variable} to one of them, or leave it unset",
        )
    if knobs.interpret.value or backend == "interpreter":
        return None
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        if backend == "cpu":
            raise DeviceError(
                f"kernels have machine code on x86-64 Linux only, this is {sys.platform}",
                hint=f"leave {knobs.backend.variable} unset: the interpreter runs them",
            )
        return None
    return _interned(features.level(), knobs.optimization.value, knobs.deterministic.value, backend == "cpu")


_interned = lru_cache(maxsize=None)(Settings)


@dataclass(frozen=True, eq=False)
class Program:
    """A kernel compiled for one instance of it, and where its arguments come from; see `function.Instance`.

    `guards` are the sizes that it depends on: the number of the argument, the axis, the size. Without machine code, the
    interpreter runs the instance.
    """

    paths: tuple[str, ...]
    kinds: tuple[object, ...]
    guards: tuple[tuple[int, int, int], ...]
    schedule: Schedule
    row_width: int | None
    executable: Executable | None
    instance: Instance | None = None

    @staticmethod
    def of(instance: Instance, executable: Executable | None) -> Program:
        """The program of an instance, by the interpreter where there is no machine code."""
        guards = tuple(_guard(atom) for atom in instance.guards)
        kept = None if executable is not None else instance
        return Program(instance.paths, instance.kinds, guards, instance.schedule, instance.row_width, executable, kept)

    def values_for(self, given: Mapping[str, Any]) -> list[Any] | None:
        """The arguments of the program, if it serves these."""
        values = collect(self.paths, given)
        if kinds_of(values) != self.kinds:
            return None
        return values if all(values[place].shape[axis] == size for place, axis, size in self.guards) else None

    def run(self, values: Sequence[Any], chosen: Settings) -> Any:
        """Runs the program once."""
        if self.executable is None:
            return self.interpreted(values)
        arrays = [value.numpy() if isinstance(value, Tensor) else value for value in values]
        return self.executable.bind(arrays, deterministic=chosen.deterministic)(*arrays)

    def interpreted(self, values: Sequence[Any]) -> Any:
        """Runs a program that has no machine code."""
        from tessera.kernels.function import interpret  # above this file: it has instances

        assert self.instance is not None
        return interpret(self.instance, values)

    def encoded(self, code: bytes) -> bytes:
        """The program as bytes: the length of its JSON, that JSON, its machine code."""
        assert self.executable is not None
        head = json.dumps(
            {
                "paths": self.paths,
                "kinds": [_text_of(kind) for kind in self.kinds],
                "guards": self.guards,
                "schedule": asdict(self.schedule),
                "row_width": self.row_width,
                "plan": self.executable.plan.encoded(),
            }
        ).encode()
        return _LENGTH.pack(len(head)) + head + code

    @staticmethod
    def decoded(data: bytes) -> Program | None:
        """A program as `encoded` wrote it; None where it cannot be read."""
        try:
            start = _LENGTH.size + _LENGTH.unpack_from(data)[0]
            found = json.loads(data[_LENGTH.size : start])
            block = found["schedule"].pop("block")
            return Program(
                tuple(found["paths"]),
                tuple(map(_kind_of, found["kinds"])),
                tuple((int(place), int(axis), int(size)) for place, axis, size in found["guards"]),
                Schedule(block=None if block is None else tuple(block), **found["schedule"]),
                found["row_width"],
                Executable(Plan.decoded(found["plan"]), data[start:]),
            )
        except (struct.error, ValueError, KeyError, IndexError, TypeError, AttributeError, TesseraError):
            return None


def _text_of(kind: Any) -> object:
    """The kind of an argument as JSON and keys have it: the name of a number's type, or the rank and type of arrays."""
    return kind.__name__ if isinstance(kind, type) else (kind[0], kind[1].name)


def _kind_of(text: Any) -> object:
    return _NUMBERS[text] if isinstance(text, str) else (int(text[0]), BY_NAME[text[1]])


class _Work:
    """What all kernels share. `lock` is held while one is traced and compiled, so that nothing is compiled twice;
    `brief` for moments only."""

    def __init__(self) -> None:
        self.lock, self.brief = threading.RLock(), threading.RLock()
        self.programs: WeakValueDictionary[str, Program] = WeakValueDictionary()  # by their second keys
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        self.lock, self.brief = threading.RLock(), threading.RLock()  # whoever held them is not in the child


WORK = _Work()


class Programs:
    """The compiled programs of one kernel, under all its schedules and grids."""

    def __init__(self) -> None:
        self._found: dict[object, list[Program]] = {}
        self._of_instances: dict[tuple[int, Settings], Program] = {}

    def find(
        self,
        key: object,
        given: Mapping[str, Any],
        chosen: Settings,
        *,
        identity: Callable[[], tuple[object, ...] | None],
        trace: Callable[[], Instance],
    ) -> tuple[Program, list[Any]]:
        """The program for these arguments, and its values for them.

        `key` is what its instances are kept under, `identity` the same for the disk, None where there is no such thing.
        """
        key = (key, chosen)
        if (found := self._fitting(key, given)) is not None:
            return found
        with WORK.lock:
            if (found := self._fitting(key, given)) is not None:
                return found
            kept = _Kept.of(identity(), chosen)
            program = None if kept is None else kept.find(given)
            if program is None:
                program = self._made(trace(), chosen, kept)
            while len(self._found) >= _MOST_KEYS and key not in self._found:
                del self._found[next(iter(self._found))]
            self._found.setdefault(key, []).append(program)
        values = program.values_for(given)
        assert values is not None
        return program, values

    def of_instance(self, instance: Instance, chosen: Settings) -> Program:
        """The program of an instance that is there already."""
        key = (id(instance), chosen)
        with WORK.lock:
            found = self._of_instances.get(key)
            if found is None:
                found = self._of_instances[key] = self._made(instance, chosen, None)
        return found

    def _fitting(self, key: object, given: Mapping[str, Any]) -> tuple[Program, list[Any]] | None:
        for program in self._found.get(key, ()):
            values = program.values_for(given)
            if values is not None:
                return program, values
        return None

    def _made(self, instance: Instance, chosen: Settings, kept: _Kept | None) -> Program:
        from tessera.kernels.compiling import compiled

        try:
            program, code = compiled(instance, chosen)
        except CompileError as refusal:
            if chosen.demanded:
                raise
            _log_fallback(instance, refusal)
            return Program.of(instance, None)
        if kept is not None:
            kept.put(program, code)
        return program


def _guard(atom: Fact) -> tuple[int, int, int]:
    """The number, the axis and the size of `arg0.size[1] = 64`; traces ask for sizes only."""
    argument, _, measure = atom.subject.partition(".")
    axis = measure.removeprefix("size[").removesuffix("]")
    return int(argument.removeprefix("arg")), int(axis), int(atom.value)


def _log_fallback(instance: Instance, refusal: CompileError) -> None:
    if "fallbacks" in knobs.logs.value:
        import logging

        logging.getLogger("tessera.fallbacks").warning("%s runs in the interpreter: %s", instance.name, refusal.message)


@dataclass(frozen=True)
class _Kept:
    """The place of a kernel's programs on the disk: its first key."""

    key: str

    @staticmethod
    def of(identity: tuple[object, ...] | None, chosen: Settings) -> _Kept | None:
        compiler = None if identity is None else build()
        if compiler is None:
            return None
        target = (chosen.level, *features.target(chosen.level), chosen.optimization)
        return _Kept(cache.key_of("kernel", compiler, target, identity))

    def find(self, given: Mapping[str, Any]) -> Program | None:
        for paths, sizes in self._asks():
            second = self._second(given, paths, sizes)
            if second is None:
                continue
            program = WORK.programs.get(second)
            if program is None:
                data = cache.shared().get(second)
                program = None if data is None else Program.decoded(data)
            if program is not None and program.values_for(given) is not None:
                return WORK.programs.setdefault(second, program)
        return None

    def put(self, program: Program, code: bytes) -> None:
        sizes = tuple((place, axis) for place, axis, _ in program.guards)
        values = tuple(size for *_, size in program.guards)
        second = self._key(program.paths, sizes, program.kinds, values)
        WORK.programs[second] = program
        asks = self._asks()
        if (program.paths, sizes) not in asks:
            asks.append((program.paths, sizes))
        store = cache.shared()
        store.put(second, program.encoded(code))
        store.put(self.key, json.dumps(asks).encode())

    def _asks(self) -> list[tuple[tuple[str, ...], tuple[tuple[int, int], ...]]]:
        """What traces asked for: where the arguments come from, and which of their sizes count."""
        data = cache.shared().get(self.key)
        if data is None:
            return []
        try:
            return [
                (tuple(map(str, paths)), tuple((int(place), int(axis)) for place, axis in sizes))
                for paths, sizes in json.loads(data)
            ]
        except (ValueError, TypeError):
            return []

    def _second(
        self, given: Mapping[str, Any], paths: tuple[str, ...], sizes: tuple[tuple[int, int], ...]
    ) -> str | None:
        values = collect(paths, given)
        try:
            found = tuple([values[place].shape[axis] for place, axis in sizes])
        except (AttributeError, IndexError):  # another object, which has no such array
            return None
        kinds = kinds_of(values)
        if not all(isinstance(kind, tuple) or kind in _NUMBERS.values() for kind in kinds):
            return None
        return self._key(paths, sizes, kinds, found)

    def _key(
        self,
        paths: tuple[str, ...],
        sizes: tuple[tuple[int, int], ...],
        kinds: Sequence[object],
        values: tuple[int, ...],
    ) -> str:
        return cache.key_of(self.key, paths, sizes, tuple([_text_of(kind) for kind in kinds]), values)
