"""The compiled programs of kernels: found in this process or on the disk, or made.

On the disk a program lies behind two keys. The first is made of all that is known before tracing: the kernel's
fingerprint, its schedule and grid, the kinds of its arguments, what it may assume of them, the processor and the
compiler. It leads to what programs have asked of their arguments, sizes and the like; with the answers the first key
becomes the second, which leads to the program.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any
from weakref import WeakValueDictionary

from tessera import knobs
from tessera.errors import CompileError, FallbackError, InternalError
from tessera.forking import fork_waits_for
from tessera.runtime.cache import store as cache
from tessera.runtime.cache.build import build
from tessera.runtime.device.garbage import collect_after
from tessera.runtime.tensor.tensor import Tensor
from tessera.tile.calls.arguments import NUMBERS, Number, collect, kinds_of, row_axis
from tessera.tile.calls.assumptions import Assumptions
from tessera.tile.calls.guarded_kernel import GuardedKernel, ask_of, kind_text
from tessera.tile.calls.guards import Ask
from tessera.tile.calls.instance import Instance
from tessera.tile.calls.settings import Settings, target_of

_MOST_KEYS = 512
MOST_SPECIAL = 8  # programs under assumptions or for grids of numbers, for one key; a general one serves the rest


class _Work:
    """The locks and programs that all kernels share.

    `lock` is held while a kernel is traced and compiled, so that nothing is compiled twice; `brief` for moments only.
    """

    def __init__(self) -> None:
        self.lock, self.brief = threading.RLock(), threading.RLock()
        self.programs: WeakValueDictionary[str, GuardedKernel] = WeakValueDictionary()  # by their second keys
        # Tracing and compiling load modules, and a child that is forked meanwhile would wait for them for ever.
        fork_waits_for(self.lock, rank=0)
        fork_waits_for(self.brief, rank=0)

    @contextmanager
    def compiling(self) -> Generator[None]:
        """The lock; after a long compile garbage is collected, not in one of the calls that follow.

        Python's collector is the caller's and is left as it is. Causal attention for sm_90a takes 3 % longer to compile
        than it does without a collector.
        """
        with self.lock:
            began = perf_counter()
            yield
        collect_after(perf_counter() - began)


WORK = _Work()


class Programs:
    """The compiled programs of one kernel, under all its schedules and grids."""

    def __init__(self) -> None:
        self._found: dict[object, list[GuardedKernel]] = {}
        self._of_instances: dict[object, list[GuardedKernel]] = {}
        self._grids: dict[object, set[object]] = {}

    def has_many_grids(self, key: object, grid: object) -> bool:
        """Whether as many other grids as may have programs of their own were asked for with this key."""
        with WORK.brief:
            if len(self._grids) >= _MOST_KEYS:
                self._grids.clear()
            grids = self._grids.setdefault(key, set())
            if len(grids) < MOST_SPECIAL:
                grids.add(grid)
            return grid not in grids

    def find(
        self,
        key: object,
        given: Mapping[str, Any],
        chosen: Settings,
        assumed: Assumptions,
        *,
        identity: Callable[[], tuple[object, ...] | None],
        trace: Callable[[], Instance],
    ) -> tuple[GuardedKernel, list[Any]]:
        """The program for these arguments, and its values for them.

        `key` is what its instances are kept under, `identity` the same for the disk, None where there is no such thing.
        """
        full_key = (key, chosen, assumed)
        if (found := self._fitting(full_key, given)) is not None:
            return found
        with WORK.compiling():
            if (found := self._fitting(full_key, given)) is not None:
                return found
            if assumed and len(self._found.get(full_key, ())) >= MOST_SPECIAL:
                return self.find(key, given, chosen, Assumptions(), identity=identity, trace=trace)
            kept = Kept.of("kernel", identity(), chosen, assumed)
            program = None if kept is None else kept.find(given)
            if program is None:
                instance = trace()
                program = self._made(instance, chosen, collect(instance.paths, given), assumed, kept)
            self._add(full_key, program)
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
    ) -> tuple[GuardedKernel, list[Any]] | None:
        """The same as `find`, and None where it would have to compile."""
        full_key = (key, chosen, assumed)
        if (found := self._fitting(full_key, given)) is None:
            kept = Kept.of("kernel", identity(), chosen, assumed)
            program = None if kept is None else kept.find(given)
            if program is None:
                return None
            self._add(full_key, program)
            found = self._fitting(full_key, given)
        return found

    def _add(self, full_key: object, program: GuardedKernel) -> None:
        with WORK.brief:
            while len(self._found) >= _MOST_KEYS and full_key not in self._found:
                del self._found[next(iter(self._found))]
            self._found.setdefault(full_key, []).append(program)

    def all(self) -> list[GuardedKernel]:
        """The programs that calls have used in this process."""
        with WORK.brief:
            keyed = [program for programs in self._found.values() for program in programs]
            kept = [program for programs in self._of_instances.values() for program in programs]
        return list({id(program): program for program in (*keyed, *kept)}.values())

    def of_instance(
        self, instance: Instance, values: Sequence[Any], chosen: Settings, assumed: Assumptions
    ) -> GuardedKernel:
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

    def _fitting(self, key: object, given: Mapping[str, Any]) -> tuple[GuardedKernel, list[Any]] | None:
        for program in self._found.get(key, ()):
            values = program.values_for(given)
            if values is not None:
                return program, values
        return None

    def _made(
        self, instance: Instance, chosen: Settings, values: Sequence[Any], assumed: Assumptions, kept: Kept | None
    ) -> GuardedKernel:
        from tessera.tile.calls.compiling import compiled

        try:
            program, code = compiled(instance, chosen, assumed.facts(instance, values), lines_of(values))
        except CompileError as refusal:
            # A demanded kernel is refused with the reason; a fault of the compiler is always shown.
            if chosen.demanded or isinstance(refusal, InternalError | FallbackError):
                raise
            if knobs.no_fallbacks.value:
                raise in_the_interpreter(instance.name, refusal) from refusal
            _log_fallback(instance, refusal)
            return GuardedKernel.of(instance, None)
        if kept is not None:
            kept.put(program, code)
        return program


def lines_of(values: Sequence[Any]) -> dict[int, int]:
    """The axis of each array among values along which rows are aligned for a GPU, counted from the end."""
    return {index: row_axis(value) for index, value in enumerate(values) if isinstance(value, Tensor)}


def in_the_interpreter(name: str, refusal: CompileError) -> FallbackError:
    """The error of what runs in the interpreter, where fallbacks are errors."""
    return FallbackError(
        f"{name} would run in the interpreter: {refusal.message}", span=refusal.span, hint=refusal.hint
    )


def _log_fallback(instance: Instance, refusal: CompileError) -> None:
    if "fallbacks" in knobs.logs.value:
        import logging

        logging.getLogger("tessera.fallbacks").warning("%s runs in the interpreter: %s", instance.name, refusal.message)


@dataclass(frozen=True)
class Kept:
    """The programs of a kernel on the disk, under their first key."""

    key: str

    @staticmethod
    def of(what: str, identity: tuple[object, ...] | None, chosen: Settings, assumed: Assumptions) -> Kept | None:
        compiler = None if identity is None or knobs.looks_at_stages() else build()
        if compiler is None:
            return None
        return Kept(cache.key_of(what, compiler, target_of(chosen), identity, assumed.words))

    def find(self, given: Mapping[str, Any]) -> GuardedKernel | None:
        """The program for these arguments."""
        for second in self._seconds(given):
            program = WORK.programs.get(second)
            if program is None:
                data = cache.shared().get(second)
                program = None if data is None else GuardedKernel.decoded(data)
            if program is not None and program.values_for(given) is not None:
                if program.executable is not None:
                    program.report.tell(program.executable.plan.name)
                return WORK.programs.setdefault(second, program)
        return None

    def find_behind(self, given: Mapping[str, Any]) -> tuple[GuardedKernel, bytes] | None:
        """The program for these arguments that has no code, and what stands there instead."""
        for second in self._seconds(given):
            data = cache.shared().get(second)
            program = None if data is None else GuardedKernel.decoded(data)
            if data is not None and program is not None and program.values_for(given) is not None:
                return program, GuardedKernel.behind(data)
        return None

    def put(self, program: GuardedKernel, code: bytes) -> None:
        """Keeps a program with its code, or with the bytes that stand for it."""
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
        """The questions of programs: where their arguments come from, and which sizes and the like of them count."""
        data = cache.shared().get(self.key)
        if data is None:
            return []
        try:
            return [(tuple(map(str, paths)), tuple(map(ask_of, asked))) for paths, asked in json.loads(data)]
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
        return cache.key_of(self.key, paths, asks, tuple([kind_text(kind) for kind in kinds]), answers)
