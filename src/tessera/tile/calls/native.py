"""Machine code for kernels: found in this process or on the disk, or made; and where the interpreter is to run instead.

On the disk a program lies behind two keys. The first is made of all that is known before tracing: the kernel's
fingerprint, its schedule and grid, the kinds of its arguments, what it may assume of them, the processor and the
compiler. It leads to what programs have asked of their arguments, sizes and the like; with the answers the first key
becomes the second, which leads to the program.
"""

from __future__ import annotations

import gc
import json
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache as once
from functools import lru_cache
from time import perf_counter
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from tessera import knobs
from tessera.errors import CompileError, DeviceError, InternalError
from tessera.forking import fork_waits_for
from tessera.interpreters.sanitizers.checks import AROUND, NOTHING
from tessera.runtime.cache import store as cache
from tessera.runtime.cache.build import build
from tessera.runtime.device.device import CPU, Device
from tessera.runtime.device.garbage import collect_after
from tessera.runtime.native import standing_answers
from tessera.runtime.native.standing_answers import StandingAnswer
from tessera.runtime.program.executable import Executable
from tessera.runtime.program.launch_plan import Plan
from tessera.runtime.tensor.tensor import Tensor
from tessera.targets.cpu import features
from tessera.tile.calls.arguments import NUMBERS, Ask, Guard, Number, collect, is_lined, kinds_of
from tessera.tile.calls.assumptions import Assumptions, guards_of
from tessera.tile.language.schedule import Schedule
from tessera.tile.language.values import CURRENT
from tessera.transforms.core.facts import Fact, FactKind

if TYPE_CHECKING:
    from tessera.runtime.cuda.executable import CudaExecutable
    from tessera.tile.calls.function import Instance

BACKENDS = ("auto", "cpu", "interpreter")
ONLY_INTERPRETED = frozenset({"unwritten"})
"""The checks of the knob that machine code does not have."""
_MOST_KEYS = 512
MOST_SPECIAL = 8  # programs under assumptions, for one key; the general program serves the rest
_NUMBERS: dict[str, type] = {kind.__name__: kind for kind in (bool, int, float)}


@dataclass(frozen=True, eq=False)
class Settings:
    """What machine code is made for. `demanded`: a kernel that has none is an error. Equal ones are one object.

    `level` is an instruction set of `target`: avx512 of cpu, sm_90a of cuda.
    """

    target: str
    level: str
    optimization: int
    checks: frozenset[str]
    deterministic: bool
    demanded: bool
    fast_math: bool = False


# Bound once: every call of a kernel asks them.
_around, _tracer = AROUND.get, CURRENT.get
_state = knobs.watching(
    knobs.interpret,
    knobs.backend,
    knobs.cpu_level,
    knobs.optimization,
    knobs.checks,
    knobs.deterministic,
    knobs.fast_math,
)
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


def quick_settings() -> Callable[[], Settings | None]:
    """`settings` for code that is written for calls: in machine code, where that can be and is loaded."""
    return _watch().ask if standing_answers.is_possible(knobs.watched()[2]) else settings


@once
def _watch() -> StandingAnswer:
    def anew() -> tuple[Settings | None, bool]:
        return settings(), _around() is NOTHING and _tracer() is None

    held, changes, variables = knobs.watched()
    return StandingAnswer(anew, [AROUND, CURRENT, held], changes, variables)


def _chosen() -> Settings | None:
    backend = knobs.backend.value or "auto"
    if backend not in BACKENDS:
        raise DeviceError(
            f"expected a backend among {', '.join(BACKENDS)}, got {backend!r}",
            hint=f"set {knobs.backend.variable} to one of them, or leave it unset",
        )
    if knobs.interpret.value or backend == "interpreter":
        return None
    if only_interpreted := sorted(knobs.checks.value & ONLY_INTERPRETED):
        if backend == "cpu":
            raise DeviceError(
                f"machine code has no check {', '.join(only_interpreted)}, and {knobs.backend.variable} asks for it",
                hint=f"leave {knobs.backend.variable} unset: the interpreter runs kernels under this check",
            )
        _log_interpreted(only_interpreted)
        return None
    if sys.platform != "linux" or features.machine() not in knobs.CPU_FAMILIES:
        if backend == "cpu":
            raise DeviceError(
                f"kernels have machine code on Linux, x86-64 and AArch64, this is {sys.platform}, {features.machine()}",
                hint=f"leave {knobs.backend.variable} unset: the interpreter runs them",
            )
        return None
    level, optimization, checks = features.level(), knobs.optimization.value, knobs.checks.value
    deterministic, fast = knobs.deterministic.value, knobs.fast_math.value
    return _interned("cpu", level, optimization, checks, deterministic, backend == "cpu", fast)


_interned = lru_cache(maxsize=None)(Settings)


def settings_at(optimization: int, chosen: Settings) -> Settings:
    """The same settings, with another amount of work for compiling."""
    return _changed(chosen, optimization=optimization)


def settings_of_level(level: str, chosen: Settings) -> Settings:
    """The same settings, for another architecture of the same kind of device."""
    return _changed(chosen, level=level)


def _changed(chosen: Settings, **changes: Any) -> Settings:
    return _interned(*(vars(chosen) | changes).values())


def settings_of_gpu(architecture: str) -> Settings:
    """Those of a GPU that need not be there, to look at what would be compiled for it."""
    return _interned("cuda", architecture, 3, frozenset[str](), True, True)


def settings_on(place: Device, chosen: Settings) -> Settings:
    """The same settings for a device: those of the CPU, or of the architecture of a GPU."""
    if place.kind == "cpu":
        return chosen
    if place.kind != "cuda":
        raise DeviceError(f"kernels have no machine code on {place}", hint="bring the arrays over first: .cpu()")
    from tessera.runtime.cuda.context import Context

    level = architecture_of(Context.of(place.index).properties.capability)
    return _changed(chosen, target="cuda", level=level, demanded=True)


def architecture_of(capability: tuple[int, int]) -> str:
    """What to compile for: PTX of an older architecture runs on newer ones, what ends in `a` on one only."""
    if capability == (9, 0):
        return "sm_90a"
    if capability < (8, 0):
        raise DeviceError(
            f"kernels need a GPU of compute capability 8.0 or newer, this one has {capability[0]}.{capability[1]}",
            hint="run them on the CPU: .cpu()",
        )
    return "sm_90" if capability > (9, 0) else "sm_89" if capability == (8, 9) else "sm_80"


def place_of(name: str, given: Iterable[Any]) -> Device:
    """The device on which a kernel's arrays lie; the CPU without any."""
    places = {value.device: None for value in given if isinstance(value, Tensor)}
    if len(places) > 1:
        raise DeviceError(
            f"{name}: the arrays lie on {', '.join(map(str, places))}, and a kernel runs on one device",
            hint="bring them to one first: .cuda() or .cpu()",
        )
    return next(iter(places), CPU)


@dataclass(frozen=True, eq=False)
class Program:
    """A kernel compiled for one instance of it, and where its arguments come from; see `function.Instance`.

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

    @staticmethod
    def of(
        instance: Instance,
        executable: Executable | CudaExecutable | None,
        asked: Iterable[Fact] = (),
        lines: Mapping[int, bool] | None = None,
    ) -> Program:
        """The program of an instance, by the interpreter where there is no machine code.

        `asked` are facts that it depends on besides those that its trace asked for, `lines` how rows lie, if it does.
        """
        guards = tuple(map(_guard, guards_of(instance, asked)))
        guards += tuple(Guard(Ask(place, "lined", 0), answer) for place, answer in (lines or {}).items())
        kept = None if executable is not None else instance
        return Program(instance.paths, instance.kinds, guards, instance.schedule, instance.row_width, executable, kept)

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
        from tessera.tile.calls.function import interpret  # above this file: it has instances

        assert self.instance is not None
        return interpret(self.instance, values)

    def encoded(self, code: bytes) -> bytes:
        """The program as bytes, its machine code behind.

        Without any, it only says which arguments it serves, and something else may stand there.
        """
        head = {
            "paths": self.paths,
            "kinds": [_text_of(kind) for kind in self.kinds],
            "guards": self.guards,
            "schedule": asdict(self.schedule),
            "row_width": self.row_width,
            "plan": None if self.executable is None else self.executable.plan.encoded(),
        }
        return cache.packed(head, code)

    @staticmethod
    def behind(data: bytes) -> bytes:
        """What stands behind the JSON of a program that could be decoded."""
        return cache.unpacked(data)[1]

    @staticmethod
    def decoded(data: bytes) -> Program | None:
        """A program as `encoded` wrote it; None where it cannot be read."""
        try:
            found, code = cache.unpacked(data)
            block = found["schedule"].pop("block")
            return Program(
                tuple(found["paths"]),
                tuple(map(_kind_of, found["kinds"])),
                tuple(Guard(_ask_of(ask), _number_of(answer)) for ask, answer in found["guards"]),
                Schedule(block=None if block is None else tuple(block), **found["schedule"]),
                found["row_width"],
                None if found["plan"] is None else loaded(Plan.decoded(found["plan"]), code),
            )
        except cache.UNREADABLE:
            return None


def loaded(plan: Plan, code: bytes) -> Executable | CudaExecutable:
    """A program ready to run: an image for the CPU, or PTX for a GPU."""
    if plan.device is None:
        return Executable(plan, code)
    from tessera.runtime.cuda.executable import CudaExecutable

    return CudaExecutable(plan, code)


def _text_of(kind: Any) -> object:
    """The kind of an argument as JSON and keys have it: the name of a number's type, or the rank and type of arrays."""
    return kind.__name__ if isinstance(kind, type) else kind


def _kind_of(text: Any) -> object:
    return _NUMBERS[text] if isinstance(text, str) else (int(text[0]), str(text[1]))


def _ask_of(found: Any) -> Ask:
    """What a program asks, as JSON has it."""
    place, what, axis = found
    if what not in ("size", "stride", "value", "lined", "alike"):
        raise ValueError(what)
    return Ask(int(place), what, int(axis))


def _number_of(found: Any) -> Number:
    if type(found) not in NUMBERS:
        raise ValueError(found)
    return found


class _Work:
    """What all kernels share. `lock` is held while one is traced and compiled, so that nothing is compiled twice;
    `brief` for moments only."""

    def __init__(self) -> None:
        self.lock, self.brief = threading.RLock(), threading.RLock()
        self.programs: WeakValueDictionary[str, Program] = WeakValueDictionary()  # by their second keys
        # Tracing and compiling load modules, and a child that is forked meanwhile would wait for them for ever.
        fork_waits_for(self.lock, rank=0)
        fork_waits_for(self.brief, rank=0)

    @contextmanager
    def compiling(self) -> Generator[None]:
        """The lock, and meanwhile no garbage is collected: all that a compiler makes lives until it is done.

        A collection looks at everything that there is, and takes as long as a stage of the compiler.
        """
        with self.lock:
            collects, began = gc.isenabled(), perf_counter()
            gc.disable()
            try:
                yield
            finally:
                if collects:
                    gc.enable()
        collect_after(perf_counter() - began)


WORK = _Work()


class Programs:
    """The compiled programs of one kernel, under all its schedules and grids."""

    def __init__(self) -> None:
        self._found: dict[object, list[Program]] = {}
        self._of_instances: dict[object, list[Program]] = {}

    def find(
        self,
        key: object,
        given: Mapping[str, Any],
        chosen: Settings,
        assumed: Assumptions,
        *,
        identity: Callable[[], tuple[object, ...] | None],
        trace: Callable[[], Instance],
    ) -> tuple[Program, list[Any]]:
        """The program for these arguments, and its values for them.

        `key` is what its instances are kept under, `identity` the same for the disk, None where there is no such thing.
        """
        place = (key, chosen, assumed)
        if (found := self._fitting(place, given)) is not None:
            return found
        with WORK.compiling():
            if (found := self._fitting(place, given)) is not None:
                return found
            if assumed and len(self._found.get(place, ())) >= MOST_SPECIAL:
                return self.find(key, given, chosen, Assumptions(), identity=identity, trace=trace)
            kept = Kept.of("kernel", identity(), chosen, assumed)
            program = None if kept is None else kept.find(given)
            if program is None:
                instance = trace()
                program = self._made(instance, chosen, collect(instance.paths, given), assumed, kept)
            self._add(place, program)
        values = program.values_for(given)
        assert values is not None
        return program, values

    def known(
        self,
        key: object,
        given: Mapping[str, Any],
        chosen: Settings,
        assumed: Assumptions,
        *,
        identity: Callable[[], tuple[object, ...] | None],
    ) -> tuple[Program, list[Any]] | None:
        """The same as `find`, and None where it would have to compile."""
        place = (key, chosen, assumed)
        if (found := self._fitting(place, given)) is None:
            kept = Kept.of("kernel", identity(), chosen, assumed)
            program = None if kept is None else kept.find(given)
            if program is None:
                return None
            self._add(place, program)
            found = self._fitting(place, given)
        return found

    def _add(self, place: object, program: Program) -> None:
        with WORK.brief:
            while len(self._found) >= _MOST_KEYS and place not in self._found:
                del self._found[next(iter(self._found))]
            self._found.setdefault(place, []).append(program)

    def of_instance(self, instance: Instance, values: Sequence[Any], chosen: Settings, assumed: Assumptions) -> Program:
        """The program of an instance that is there already, for these values of its arguments."""
        with WORK.compiling():
            programs = self._of_instances.setdefault((id(instance), chosen, assumed), [])
            found = next((program for program in programs if program.serves(values)), None)
            if found is None and assumed and len(programs) >= MOST_SPECIAL:
                return self.of_instance(instance, values, chosen, Assumptions())
            if found is None:
                found = self._made(instance, chosen, values, assumed, None)
                programs.append(found)
        return found

    def _fitting(self, key: object, given: Mapping[str, Any]) -> tuple[Program, list[Any]] | None:
        for program in self._found.get(key, ()):
            values = program.values_for(given)
            if values is not None:
                return program, values
        return None

    def _made(
        self, instance: Instance, chosen: Settings, values: Sequence[Any], assumed: Assumptions, kept: Kept | None
    ) -> Program:
        from tessera.tile.calls.compiling import compiled

        try:
            program, code = compiled(instance, chosen, assumed.facts(instance, values), lines_of(values))
        except CompileError as refusal:
            # A kernel that somebody wrote is refused for reasons that they know; a fault is for them to see, too.
            if chosen.demanded or isinstance(refusal, InternalError):
                raise
            _log_fallback(instance, refusal)
            return Program.of(instance, None)
        if kept is not None:
            kept.put(program, code)
        return program


def lines_of(values: Sequence[Any]) -> dict[int, bool]:
    """Of each array among values whether its rows lie well for a GPU."""
    return {place: is_lined(value) for place, value in enumerate(values) if isinstance(value, Tensor)}


def _guard(atom: Fact) -> Guard:
    """The guard that `arg0.size[1] = 64`, `arg0.stride[1] = 1`, `arg2 = 0.5` or `arg0.size[1] = arg1.size[1]` is."""
    assert atom.kind in (FactKind.SIZE, FactKind.STRIDE, FactKind.VALUE, FactKind.EQUAL), atom
    if atom.kind is FactKind.EQUAL:  # with the first array, which the other one is behind
        (place, axis), _ = sorted((_size_of(atom.subject), _size_of(str(atom.value))), reverse=True)
        return Guard(Ask(place, "alike", axis), True)
    assert not isinstance(atom.value, str)
    argument, _, measure = atom.subject.partition(".")
    what, _, axis = measure.removesuffix("]").partition("[")
    return Guard(Ask(int(argument.removeprefix("arg")), what or "value", int(axis or 0)), atom.value)


def _size_of(measure: str) -> tuple[int, int]:
    """The place and the axis of `arg1.size[2]`."""
    argument, _, axis = measure.removesuffix("]").partition(".size[")
    return int(argument.removeprefix("arg")), int(axis)


def _log_interpreted(checks: Sequence[str]) -> None:
    if "fallbacks" in knobs.logs.value:
        import logging

        words = "everything runs in the interpreter: machine code has no check %s"
        logging.getLogger("tessera.fallbacks").warning(words, ", ".join(checks))


def _log_fallback(instance: Instance, refusal: CompileError) -> None:
    if "fallbacks" in knobs.logs.value:
        import logging

        logging.getLogger("tessera.fallbacks").warning("%s runs in the interpreter: %s", instance.name, refusal.message)


def target_of(chosen: Settings) -> tuple[object, ...]:
    """What of settings machine code depends on, as keys have it: on a CPU, whether sums are ordered is up to calls."""
    gpu = (chosen.target, chosen.deterministic)
    processor = features.target(chosen.level) if chosen.target == "cpu" else gpu
    return (chosen.level, *processor, chosen.optimization, *sorted(chosen.checks))


@dataclass(frozen=True)
class Kept:
    """The place of a kernel's programs on the disk: its first key."""

    key: str

    @staticmethod
    def of(what: str, identity: tuple[object, ...] | None, chosen: Settings, assumed: Assumptions) -> Kept | None:
        compiler = None if identity is None or knobs.looks_at_stages() else build()
        if compiler is None:
            return None
        return Kept(cache.key_of(what, compiler, target_of(chosen), identity, assumed.words))

    def find(self, given: Mapping[str, Any]) -> Program | None:
        """The program for these arguments."""
        for second in self._seconds(given):
            program = WORK.programs.get(second)
            if program is None:
                data = cache.shared().get(second)
                program = None if data is None else Program.decoded(data)
            if program is not None and program.values_for(given) is not None:
                return WORK.programs.setdefault(second, program)
        return None

    def find_behind(self, given: Mapping[str, Any]) -> tuple[Program, bytes] | None:
        """The program for these arguments that has no code, and what stands there instead."""
        for second in self._seconds(given):
            data = cache.shared().get(second)
            program = None if data is None else Program.decoded(data)
            if data is not None and program is not None and program.values_for(given) is not None:
                return program, Program.behind(data)
        return None

    def put(self, program: Program, code: bytes) -> None:
        """Keeps a program with its code, or with what stands in its place."""
        asked = tuple(guard.ask for guard in program.guards)
        answers = tuple(guard.answer for guard in program.guards)
        second = self._key(program.paths, asked, program.kinds, answers)
        if program.executable is not None:
            WORK.programs[second] = program
        asks = self._asks()
        if (program.paths, asked) not in asks:
            asks.append((program.paths, asked))
        store = cache.shared()
        store.put(second, program.encoded(code))
        store.put(self.key, json.dumps(asks).encode())

    def _asks(self) -> list[tuple[tuple[str, ...], tuple[Ask, ...]]]:
        """What programs asked: where the arguments come from, and what of them counts."""
        data = cache.shared().get(self.key)
        if data is None:
            return []
        try:
            return [(tuple(map(str, paths)), tuple(map(_ask_of, asked))) for paths, asked in json.loads(data)]
        except cache.UNREADABLE:
            return []

    def _seconds(self, given: Mapping[str, Any]) -> Iterator[str]:
        for paths, asked in self._asks():
            if (second := self._second(given, paths, asked)) is not None:
                yield second

    def _second(self, given: Mapping[str, Any], paths: tuple[str, ...], asked: tuple[Ask, ...]) -> str | None:
        try:
            values = collect(paths, given)
            kinds = kinds_of(values)
            if not all(isinstance(kind, tuple) or kind in NUMBERS for kind in kinds):
                return None
            answers = tuple([ask.of(values) for ask in asked])
        except cache.UNREADABLE:  # another object, which has no such array
            return None
        return self._key(paths, asked, kinds, answers)

    def _key(
        self, paths: tuple[str, ...], asked: tuple[Ask, ...], kinds: Sequence[object], answers: tuple[Number, ...]
    ) -> str:
        asks = tuple([tuple(ask) for ask in asked])
        return cache.key_of(self.key, paths, asks, tuple([_text_of(kind) for kind in kinds]), answers)
