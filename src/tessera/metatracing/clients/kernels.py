"""Tile kernels as clients of the tiers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from tessera.errors import TesseraError
from tessera.metatracing.clients.shipping import NotShippable, SentSettings, pack
from tessera.runtime.tensor.tensor import Tensor
from tessera.tiers.client import Call, Choice, Compiled, GuardType, Runner, RuntimeGuard, TierLevel
from tessera.tiers.logs import log
from tessera.tiers.records import Described, ExecutionTier, LaunchFacts
from tessera.tiers.tiered import is_traceable
from tessera.tile.calls.arguments import NUMBERS
from tessera.tile.calls.assumptions import Assumptions
from tessera.tile.calls.function import Kernel
from tessera.tile.calls.guarded_kernel import GuardedKernel
from tessera.tile.calls.guards import Guard, aligned_rows
from tessera.tile.calls.program_cache import Kept, Programs
from tessera.tile.calls.settings import Settings, device_of, settings, settings_at, settings_of_level, settings_on
from tessera.tile.calls.verification import Verified
from tessera.tile.language.kernel_code import is_kernel_module
from tessera.tile.language.schedule import Schedule
from tessera.tile.language.values import is_tracing

if TYPE_CHECKING:
    from tessera.metatracing.events.execution import KernelExecution
    from tessera.metatracing.events.host import HostExecution

_INTERPRETED_SIZE = 1 << 12
"""Elements of all arrays up to which the interpreter has a result before a compiler has: on the CPU, at first."""
_SMALL = Schedule(block=(64, 16), warps=4, stages=1)
"""The schedule of fast compilation on a GPU, with little code: small tiles, no prefetching."""


class KernelContext(NamedTuple):
    """The data to compile for a call, besides its values."""

    static: Mapping[str, Any]
    settings: Settings | None


class KernelClient:
    """A kernel, in the form that its user gave it. Kernels that are verified at every call have no tiers."""

    takes_tensors = False
    token = staticmethod(settings)

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.name = kernel.__name__
        self.signature = kernel.signature
        parameters = self.signature.parameters.values()
        self.paths = tuple(one.name for one in parameters if one.kind is not one.KEYWORD_ONLY)
        self._is_traceable = is_traceable(self.signature) and not isinstance(kernel, Verified)
        self._sent: Call | None = None

    # Calls

    def call(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Call | None:
        if not self._is_traceable or is_tracing():
            return None
        bound = self.kernel.bound(args, kwargs)
        values = tuple(bound.given.values())
        if not all(isinstance(value, Tensor) or value.__class__ in NUMBERS for value in values):
            return None
        chosen = settings()
        here = None if chosen is None else settings_on(device_of(self.name, values), chosen)
        return Call(values, (here, bound.key), KernelContext(bound.static, here))

    def call_untiered(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        return self.kernel(*args, **kwargs)

    def static_values(self, call: Call) -> Sequence[Any]:
        return tuple(call.context.static.values())

    def unchanged(self, call: Call) -> Callable[[], bool]:
        return self.kernel.seen(self.static_values(call)).is_unchanged

    # Programs

    def compiles(self, call: Call) -> bool:
        return call.context.settings is not None

    def starts_quickly(self, call: Call) -> bool:
        """New kernels of users, and tiny arrays; what comes with the package is fast from the start."""
        here: Settings | None = call.context.settings
        if here is None:
            return False
        return is_kernel_module(self.kernel.function.__module__) or _is_interpreted(call, here)

    def form(self, level: TierLevel) -> Kernel:
        """The kernel at a level. It has a cache of programs of its own, so that they are dropped with it."""
        form = self.kernel.changed(_programs=Programs(), assumed=Assumptions())
        if level.schedule is not None:
            form = form.with_schedule(level.schedule)
        return form.assume(*level.assumed) if level.assumed else form

    def compile(self, call: Call, level: TierLevel) -> Compiled:
        here: Settings | None = call.context.settings
        if here is None or (level.quick and _is_interpreted(call, here)):
            return Interpreted(self.kernel, call.context.static)
        form = self.form(self.resolved(call, level, here) or level.with_schedule(None))
        if level.quick:
            form, here = self._quick(form, here)
            bound = form.bound(call.values, call.context.static)
            program, _ = form.own_program(bound.given, bound.static, here)
        else:
            program, _ = form.program_for(call.values, call.context.static, here)
        return self._compiled(program, call, here)

    @staticmethod
    def _quick(form: Kernel, here: Settings) -> tuple[Kernel, Settings]:
        """The form and settings of fast compilation: little optimization, and on a GPU little code."""
        plain = settings_at(0, settings_of_level(here.compiler.plain_level(here.level), here))
        form = form.changed(matched=True)
        if not here.compiler.has_warps or not form.free or not form.follows_block or form.space is not None:
            return form, plain
        return form.with_schedule(_SMALL), plain

    def find(self, call: Call, level: TierLevel) -> Compiled | None:
        here: Settings | None = call.context.settings
        resolved = None if here is None else self.resolved(call, level, here, make=False)
        if here is None or resolved is None:
            return None
        form = self.form(resolved)
        if level.quick:
            form, here = self._quick(form, here)
            program = form.own_known_program(form.bound(call.values, call.context.static), here)
        else:
            program = form.known_program(form.bound(call.values, call.context.static), here)
        if program is None:
            return None
        if here.compiler.is_asynchronous and program.executable is not None:
            _load(program.executable, call)
        return self._compiled(program, call, here)

    def _compiled(self, program: GuardedKernel, call: Call, here: Settings) -> Compiled:
        if program.executable is None:
            return Interpreted(self.kernel, call.context.static)
        return KernelProgram(program, self.paths, here)

    def execution(
        self, compiled: Compiled, level: TierLevel, call: Call, seconds: float | None = None
    ) -> KernelExecution | HostExecution | None:
        """A program of a level as its events are found; None for the interpreter."""
        from tessera.metatracing.events.execution import KernelExecution
        from tessera.metatracing.events.host import HostExecution

        executable: Any = compiled.program.executable if isinstance(compiled, KernelProgram) else None
        if executable is None:
            return None
        if executable.plan.device is not None:
            return KernelExecution.launched(executable, call.values, seconds=seconds)
        return HostExecution.of(self.form(level), *call.values, **call.context.static)

    def request(self, call: Call, levels: Sequence[TierLevel]) -> bytes | None:
        if self._sent is not call:  # all levels of a request are of one call
            if self.identity(call) is None:
                return None
            self._sent = call
        try:
            return pack(Shipment.of(self.kernel, call, levels))
        except NotShippable as reason:
            log("tiers", f"{self.name} cannot be sent to another process: {reason}")
            return None

    def resolved(self, call: Call, level: TierLevel, here: Settings, *, make: bool = True) -> TierLevel | None:
        """A level with a schedule instead of the models' choice, which is made here, or was made by another process.

        Where models expect no gain, it is the first block of the target's own ranking.
        """
        if not isinstance(level.schedule, Choice):
            return level
        from tessera.metatracing.clients import advice

        identity = self.identity(call)
        key = None if identity is None else advice.key_of(identity, call.described)
        found = None if key is None else advice.kept(key)
        if found is None and make:
            times, ranked = advice.model_for(here), self._ranked(call, here)
            if times is not None:
                found = advice.advised(self.kernel, call.values, call.context.static, times, ranked)
            found = found or next(iter(ranked), None)
            if found is not None and key is not None:
                advice.keep(key, found)
        return None if found is None else level.with_schedule(found)

    def schedules(self, call: Call) -> Sequence[Schedule | None]:
        """Its own first, then the models' choice, then the target's own ranking; for spaces their first points.

        Where the user has set a block, there is nothing to choose.
        """
        kernel, here = self.kernel, call.context.settings
        if here is None or not kernel.follows_block:
            return [None]
        if kernel.space is not None:
            points = [point for point, _ in zip(kernel.space, range(4), strict=False)]
            return [None, *points[1:]]
        if not kernel.free:
            return [None]
        ranked = self._ranked(call, here)
        from tessera.metatracing.clients import advice
        from tessera.metatracing.models.kernel_blocks import REFERENCE

        if not ranked or advice.model_name(here) is None:
            return [None, *ranked]
        # The reference block is always tried.
        has_reference = not here.compiler.has_warps
        reference = Schedule(block=REFERENCE)
        return [None, Choice(rank=1), *sorted(ranked, key=lambda one: has_reference and one != reference)]

    def _ranked(self, call: Call, here: Settings) -> Sequence[Schedule]:
        """Other blocks than the kernel's own, by the ranking of the target."""
        if not here.compiler.has_warps:
            return [Schedule(block=block) for block in self._cpu_blocks(call, here.level)]
        blocks = self.kernel.blocks_for(self.kernel.bound(call.values, call.context.static), here)[1:]
        return [Schedule(block=block) for block in blocks]

    def knows_schedules(self, call: Call) -> bool:
        kernel, here = self.kernel, call.context.settings
        if here is None or not here.compiler.has_warps or not kernel.follows_block or kernel.space is not None:
            return True
        return not kernel.free or kernel.knows_blocks(kernel.bound(call.values, call.context.static), here)

    @staticmethod
    def _cpu_blocks(call: Call, level: str) -> list[tuple[int, ...]]:
        """The best by the model of CPUs, the block that others are compared with, then others by the model."""
        from tessera.metatracing.models.kernel_blocks import REFERENCE, Processor, Work, blocks_for

        arrays = [value for value in call.values if isinstance(value, Tensor) and value.ndim]
        if not arrays:
            return []
        first, rows = arrays[0], [value.shape[max(0, value.ndim - 2)] for value in arrays]
        work = Work(rows[0], max(rows), first.shape[-1], prod(first.shape[:-2]), first.dtype)
        best, *others = blocks_for(work, Processor.here(level))
        return list(dict.fromkeys([best, REFERENCE, *others]))

    def identity(self, call: Call) -> str | None:
        here: Settings | None = call.context.settings
        if here is None:
            return None
        bound = self.kernel.bound(call.values, call.context.static)
        kept = Kept.of("tiers", bound.identity(), here, Assumptions())
        return None if kept is None else kept.key


class KernelProgram:
    """A compiled kernel."""

    is_native = True

    def __init__(self, program: GuardedKernel, paths: Sequence[str], here: Settings) -> None:
        self.program = program
        self._here = here
        self._indices = [paths.index(path) for path in program.paths]
        self._is_whole = self._indices == list(range(len(paths)))
        self.guards = tuple(self._guard(guard) for guard in program.guards)

    @property
    def is_repeatable(self) -> bool:
        """A run fails before it begins, unless that is about what it has printed by then."""
        return self.program.executable is None or not self.program.executable.plan.prints

    @property
    def nbytes(self) -> int:
        return 0 if self.program.executable is None else self.program.executable.nbytes

    def _guard(self, guard: Guard) -> RuntimeGuard:
        path = self.program.paths[guard.ask.argument]
        index, what, axis = self._indices[guard.ask.argument], guard.ask.what, guard.ask.axis
        if what == "row_aligned":
            return RuntimeGuard(GuardType.ALIGNMENT_GUARD, index, 0, f"{path} row_aligned", guard.answer, aligned_rows)
        if what == "alike":
            first = next(at for at, kind in enumerate(self.program.kinds) if isinstance(kind, tuple))
            return _alike((path, index), (self.program.paths[first], self._indices[first]), axis)
        return RuntimeGuard.about(index, path, what, axis, guard.answer)

    def bind(self, call: Call) -> Runner:
        executable = self.program.executable
        assert executable is not None
        values = [call.values[index] for index in self._indices]
        arrays = [value.geometry if isinstance(value, Tensor) else value for value in values]
        run = executable.bind(arrays, deterministic=self._here.deterministic)
        if self._is_whole:
            return run
        indices = self._indices
        return lambda *given: run(*[given[index] for index in indices])

    def launch_facts(self, call: Call) -> LaunchFacts:
        executable = self.program.executable
        assert executable is not None
        plan = executable.plan
        values = [call.values[index] for index in self._indices]
        sizes = plan.sizes([value.shape if isinstance(value, Tensor) else None for value in values])
        programs = prod(plan.extents(sizes))
        device = next((value.device for value in values if isinstance(value, Tensor)), None)
        if plan.device is None or device is None or not device.is_accelerator:
            return LaunchFacts(blocks=programs)
        from tessera.runtime.cuda.executable import CudaExecutable

        assert isinstance(executable, CudaExecutable)
        launch, function = plan.device, executable.function(device.index)
        properties = function.context.properties
        resident = function.occupancy(launch.threads, launch.shared) * launch.threads
        return LaunchFacts(
            launch.blocks(programs, properties.multiprocessors),
            launch.threads,
            min(1.0, resident / properties.threads_per_multiprocessor),
            launch.shared,
            function.attributes.registers,
        )


def _alike(one: tuple[str, int], first: tuple[str, int], axis: int) -> RuntimeGuard:
    """A guard that two arguments, by their paths and indices, have the same size along an axis."""
    (path, index), (other, at) = one, first

    def check(values: Sequence[Any]) -> bool:
        return values[index].shape[axis] == values[at].shape[axis]

    word = f"{path}.size[{axis}] = {other}.size[{axis}]"
    return RuntimeGuard(GuardType.RELATION_GUARD, index, axis, word, True, check)


class Interpreted:
    """A kernel in the interpreter: slow, and ready at once."""

    is_native = False
    is_repeatable = True
    guards: tuple[RuntimeGuard, ...] = ()
    nbytes = 0

    def __init__(self, kernel: Kernel, static: Mapping[str, Any]) -> None:
        self._kernel, self._static = kernel, dict(static)

    def bind(self, call: Call) -> Runner:
        return lambda *values: self._kernel.interpreted(values, self._static)

    def launch_facts(self, call: Call) -> LaunchFacts:
        return LaunchFacts()


class Shipment(NamedTuple):
    """A kernel, a call and levels, as another process takes them."""

    function: Any
    form: Mapping[str, Any]
    static: Mapping[str, Any]
    described: Described
    levels: tuple[tuple[int, tuple[str, ...], Schedule | None, bool], ...]
    settings: SentSettings

    @staticmethod
    def of(kernel: Kernel, call: Call, levels: Sequence[TierLevel]) -> Shipment:
        names = ("schedule", "space", "tuning", "given_grid", "free")
        return Shipment(
            kernel.function,
            {name: getattr(kernel, name) for name in names},
            dict(call.context.static),
            call.described,
            tuple([(int(level.tier), level.assumed, level.schedule, level.quick) for level in levels]),
            SentSettings.of(call.context.settings, ("optimization", "checks", "deterministic")),
        )

    def build(self) -> list[str | None]:
        """Compiles all levels into the compile cache; says for each what went wrong, None where nothing did.

        Without levels, it ranks schedules, and stores the ranking there, too.
        """
        from tessera.tiers.stand_ins import stand_ins

        client = KernelClient(Kernel(self.function).changed(**self.form))
        outcome: list[str | None] = []
        with self.settings.held():
            call = client.call(stand_ins(self.described), self.static)
            if call is None:
                return ["the kernel cannot be called there"] * len(self.levels)
            if not self.levels:
                client.schedules(call)
            for tier, assumed, schedule, quick in self.levels:
                try:
                    client.compile(call, TierLevel(ExecutionTier(tier), tuple(assumed), schedule, quick))
                    outcome.append(None)
                except TesseraError as error:
                    outcome.append(error.message)
        return outcome


def _load(executable: Any, call: Call) -> None:
    """Has the driver load the code now: that takes long, and here no call waits for a result."""
    from tessera.runtime.cuda.executable import CudaExecutable

    device = next((value.device for value in call.values if isinstance(value, Tensor)), None)
    if device is not None and device.is_accelerator and isinstance(executable, CudaExecutable):
        executable.function(device.index)


def _is_interpreted(call: Call, here: Settings) -> bool:
    """Whether the interpreter has the first result."""
    if here.compiler.is_asynchronous:
        return False
    return sum(one.size for one in call.values if isinstance(one, Tensor)) <= _INTERPRETED_SIZE
