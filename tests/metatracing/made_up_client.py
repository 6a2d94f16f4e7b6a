"""A client whose programs cost what a test says, know what they were compiled for, and notice whom they must not serve.

`scaled(x, y, factor, *, flag)` is factor·x + y, or the same of −x with the flag. Running a program advances the clock.
"""

from __future__ import annotations

import inspect
import json
import os
import pickle
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import tessera as ts
from tessera import Schedule, Tensor
from tessera.errors import CompileError
from tessera.metatracing import Call, GuardType, ManualClock, MetaTracingRuntime, RuntimeConfig, RuntimeGuard, TierLevel
from tessera.tiers.client import Compiled, facts_of
from tessera.tiers.records import LaunchFacts
from tessera.tiers.sites.request import Request
from tessera.tile.calls.arguments import NUMBERS

PATHS = ("x", "y", "factor")
Costs = Callable[[TierLevel, Call], int]
MILLISECOND = 1_000_000


def usual_costs(level: TierLevel, call: Call) -> int:
    """A millisecond, less with each tier; numbers alone are no help."""
    helps = level.tier == 3 and any("." in word for word in level.assumed)
    return {1: 1000, 2: 800, 3: 600 if helps else 800}[int(level.tier)] * 1000


def reference(x: Any, y: Any, factor: float, flag: bool = False) -> Any:
    """What calls must give."""
    return factor * (-x if flag else x) + y


def _signature(x: Any, y: Any, factor: float, *, flag: bool = False) -> None: ...


class MadeUpProgram:
    """A program for some facts."""

    is_native = True
    is_repeatable = True

    def __init__(self, client: MadeUp, level: TierLevel, call: Call) -> None:
        self.client, self.level = client, level
        facts = facts_of(PATHS, call.described)
        # The width is asked whatever is assumed, as traces of kernels do.
        words = {f"x.size[{call.values[0].ndim - 1}]", *level.assumed}
        self.guards = tuple(_guard(word, facts[word]) for word in sorted(words))
        self.nbytes = client.nbytes

    def bind(self, call: Call) -> Callable[..., Any]:
        if (fault := self.client.bind_faults.get(self.level.tier)) is not None:
            raise fault
        shapes = [value.geometry.shape for value in call.values if isinstance(value, Tensor)]

        def run(x: Any, y: Any, factor: float) -> Any:
            client = self.client
            if (fault := client.run_faults.get(self.level.tier)) is not None:
                raise fault
            given = (Tensor.wrap(x, ts.f32), Tensor.wrap(y, ts.f32), factor)
            if [x.shape, y.shape] != shapes or not all(guard.check_function(given) for guard in self.guards):
                client.false_accepts += 1
            client.ran.append(self.level)
            client.clock.advance(client.costs(self.level, call))
            return reference(x, y, factor, call.context["flag"])

        return run

    def launch_facts(self, call: Call) -> LaunchFacts:
        return LaunchFacts(blocks=1)


def _guard(word: str, answer: Any) -> RuntimeGuard:
    path, _, measure = word.partition(".")
    index = PATHS.index(path)
    if not measure:
        kind = GuardType.CAUSAL_GUARD if isinstance(answer, bool) else GuardType.VALUE_GUARD
        return RuntimeGuard(kind, index, 0, word, answer)
    what, _, axis = measure.removesuffix("]").partition("[")
    kind = GuardType.SHAPE_GUARD if what == "size" else GuardType.STRIDE_GUARD
    return RuntimeGuard(kind, index, int(axis), word, answer)


class MadeUp:
    """The client. `failing` levels cannot be compiled; faults are raised by programs of a tier."""

    name = "scaled"
    takes_tensors = False
    paths = PATHS
    signature = inspect.signature(_signature)

    def __init__(self, clock: ManualClock, costs: Costs = usual_costs) -> None:
        self.clock, self.costs = clock, costs
        self.settings: object = "usual"
        self.captured = 1
        self.failing: Callable[[TierLevel], bool] = lambda level: False
        self.bind_faults: dict[int, Exception] = {}
        self.run_faults: dict[int, Exception] = {}
        self.options: list[Schedule | None] = [None]
        self.nbytes = 1000
        self.false_accepts = 0
        self.ran: list[TierLevel] | deque[TierLevel] = []
        self.on_disk: Callable[[TierLevel], bool] = lambda level: False
        self.named: str | None = None
        self.sendable = True
        self.looks_first = False

    def token(self) -> object:
        return self.settings

    def static_values(self, call: Call) -> Sequence[Any]:
        return (call.context["flag"],)

    def unchanged(self, call: Call) -> Callable[[], bool]:
        seen = self.captured
        return lambda: self.captured == seen

    def call(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Call | None:
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        x, y = (ts.asarray(bound.arguments[name]) for name in ("x", "y"))
        factor, flag = bound.arguments["factor"], bound.arguments["flag"]
        if factor.__class__ not in NUMBERS:
            return None
        kinds = ((x.ndim, str(x.dtype)), (y.ndim, str(y.dtype)), factor.__class__)
        return Call((x, y, factor), (self.settings, self.captured, kinds, flag), {"flag": flag})

    def call_untiered(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        return reference(*args, **kwargs)

    def compiles(self, call: Call) -> bool:
        return True

    def starts_quickly(self, call: Call) -> bool:
        return True

    def compile(self, call: Call, level: TierLevel) -> MadeUpProgram:
        if self.failing(level):
            raise CompileError(f"{level} cannot be compiled")
        return MadeUpProgram(self, level, call)

    def find(self, call: Call, level: TierLevel) -> MadeUpProgram | None:
        return MadeUpProgram(self, level, call) if self.on_disk(level) else None

    def request(self, call: Call, levels: Sequence[TierLevel]) -> bytes | None:
        return pickle.dumps([str(level) for level in levels]) if self.sendable else None

    def schedules(self, call: Call) -> Sequence[Schedule | None]:
        return self.options

    def knows_schedules(self, call: Call) -> bool:
        return not self.looks_first

    def identity(self, call: Call) -> str | None:
        return self.named


class Later:
    """Compiles when a test says so."""

    def __init__(self, room: bool = False) -> None:
        self.room = room
        self.free = True
        self.requests: list[Request] = []
        self.there: dict[int, dict[int, Compiled]] = {}

    def can_compile(self, packed: bytes | None) -> bool:
        return True

    @property
    def is_ready(self) -> bool:
        return True

    @property
    def has_room(self) -> bool:
        return self.room

    @property
    def is_free(self) -> bool:
        return self.free

    def prepare(self) -> None:
        return

    def compile_now(self, packed: bytes | None) -> bool:
        return False

    def submit(self, *requests: Request) -> None:
        self.requests += requests

    def arrive(self, index: int) -> None:
        """One of the programs of the next request is there."""
        request = self.requests[0]
        level = request.levels[index]
        self.there.setdefault(id(request), {})[index] = program = request.site.client.compile(request.call, level)
        request.site.arrived(request, level, program)

    def finish(self) -> None:
        while self.requests:
            request = self.requests.pop(0)
            there = self.there.pop(id(request), {})
            made = [(level, there.get(index, one)) for index, (level, one) in enumerate(request.compiled())]
            request.site.compiled(request, made)

    def wait(self, timeout: float) -> bool:
        return not self.requests

    def close(self) -> None:
        return


class Made:
    """A client under a runtime, with a clock that only its programs move."""

    def __init__(
        self, costs: Costs = usual_costs, compiling: Any = None, *, named: str | None = None, **config: Any
    ) -> None:
        self.clock = ManualClock()
        self.client = MadeUp(self.clock, costs)
        self.client.named = named
        options: dict[str, Any] = {"background_compilation": False, "sample_period": 0, "persist": False, **config}
        self.runtime = MetaTracingRuntime(RuntimeConfig(**options), clock=self.clock, compiling=compiling)
        self.tiered = self.runtime.tiered(self.client)

    def call(self, *shape: int, factor: Any = 2.0, flag: bool = False, times: int = 1) -> list[int]:
        """Calls with contiguous arrays of a shape, checked; the tiers that ran."""
        x = ts.arange(int(np.prod(shape)), dtype=ts.f32).reshape(shape)
        return [self.checked(x, ts.ones(shape), factor, flag) for _ in range(times)]

    def checked(self, x: Tensor, y: Tensor, factor: Any, flag: bool) -> int:
        found, tier = self.tiered.call_with_tier(x, y, factor, flag=flag)
        np.testing.assert_array_equal(np.asarray(found), reference(x.numpy(), y.numpy(), factor, flag))
        assert self.client.false_accepts == 0
        return int(tier)

    def __getitem__(self, name: str) -> int:
        """How often something happened."""
        return self.runtime.counts[name]


def build(data: bytes) -> bytes:
    """What a worker of tests does with a request: it dies, fails, or says that all is well."""
    levels = pickle.loads(data)
    wish = os.environ.get("TESSERA_TEST_WISH", "")
    if wish == "die":
        os._exit(7)
    if wish == "sleep":
        time.sleep(30)
    if wish == "raise":
        raise MemoryError("no memory left to compile")
    return json.dumps([None] * len(levels)).encode()


LOADED: list[int] = []


def noted() -> None:
    """Something that a worker may load."""
    LOADED.append(os.getpid())


def slept() -> None:
    """Something that takes a worker long to load."""
    time.sleep(2)


def loaded_by(data: bytes) -> bytes:
    """Says which processes have loaded it."""
    return json.dumps(LOADED).encode()
