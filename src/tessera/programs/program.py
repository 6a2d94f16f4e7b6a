"""Programs: compiled graph functions, bound to arrays and called.

A program keeps the text of every level, and makes machine code of its kernels when it is first bound to arrays that
need it: on a GPU code may depend on how the rows of arrays lie.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from tessera.cached_property import cached_property
from tessera.errors import DeviceError, DtypeError, ShapeError
from tessera.interpreters.core.machine import Machine
from tessera.programs import host, memory_plan
from tessera.programs.buffer_assignment import BufferAssignment, assign_buffers
from tessera.programs.call_codegen import Site, Writer
from tessera.programs.donation import donors
from tessera.programs.host_site import HostSite
from tessera.programs.levels import Levels
from tessera.programs.resizing import Rebound, Resizing
from tessera.runtime.device.device import Device
from tessera.runtime.program.executable import Geometry
from tessera.runtime.tensor.tensor import Tensor, stores_alike
from tessera.shapes.environment import Origin, ShapeEnvironment
from tessera.shapes.symbols import Symbols
from tessera.tile.calls.settings import Settings, device_of
from tessera.transforms.core.compile_report import CompileReport

if TYPE_CHECKING:
    from tessera.programs.code import Codes


@dataclass(frozen=True)
class Memory:
    """The memory of a bound program, in bytes: its arena, its results, and the least that any plan of its arena needs.

    `peak` is the arena and the results together. `slots` are the parts of the arena, each with its first and last act.
    """

    arena: int
    results: int
    least: int
    slots: tuple[memory_plan.Slot, ...]
    donors: Mapping[int, int] = field(default_factory=dict[int, int])
    """Results, by their pieces, that lie in arguments given away, unless these are held elsewhere."""

    @property
    def peak(self) -> int:
        return self.arena + self.results


@dataclass(eq=False)
class BoundProgram:
    """A program bound to arrays of given sizes and strides. Calling it only takes addresses and launches."""

    program: Program
    run: Callable[..., tuple[Tensor, ...]]
    memory: Memory
    launches: int
    sizes: Mapping[str, int]
    geometry: Sequence[Geometry | None]
    recorded: int = 0
    """How many of its launches are replayed as graphs."""

    @cached_property
    def buffers(self) -> BufferAssignment:
        """The memory that each array has."""
        return assign_buffers(self.program.host, self.sizes, self.geometry)

    def __call__(self, *values: Any) -> tuple[Tensor, ...]:
        return self.run(*values)


class OtherPrograms(Protocol):
    """The programs of a function for sizes that come; see `size_classes.py`."""

    @property
    def programs(self) -> Sequence[Program]: ...

    def program_for(self, sizes: Mapping[str, int]) -> Program: ...


@dataclass(eq=False)
class Program:
    """A compiled graph function. `world` says what its effects touch: each act that has some asks anew."""

    host: host.Host
    settings: Settings | None
    levels: Levels
    codes: Codes
    world: Callable[[], Machine] = field(default_factory=lambda: _one_world(Machine()))
    device: Device | None = None
    """The device that it runs on without an array among its arguments."""
    report: CompileReport = field(default_factory=CompileReport)
    """Which ops were not made one kernel, and why."""
    size_classes: OtherPrograms | None = None
    """The programs of the function with blocks for the sizes that come; None where there are no others."""
    _last: tuple[memory_plan.Plan, int] | None = field(default=None, init=False, repr=False)

    @property
    def last(self) -> tuple[memory_plan.Plan, int] | None:
        """The plan of the memory of the last binding, and the bytes of its results."""
        return self._last

    @property
    def memory(self) -> Memory | None:
        """The memory of the last binding."""
        return None if self._last is None else _memory(*self._last)

    @property
    def name(self) -> str:
        return self.host.name

    @cached_property
    def kernels(self) -> tuple[str, ...]:
        """The name of the kernel of each launch, in order."""
        return tuple(self.host.kernels[launch.kernel].name for launch in self.host.launches)

    def explain(self) -> list[str]:
        """Which fusions were refused, and how each kernel that has run was compiled: a line for each."""
        reports = [(self.name, self.report)] if self.report.refusals or self.report.choices else []
        found = [f"@{name}: {line}" for name, report in (*reports, *self.codes.reports()) for line in report.lines()]
        return [*found, *[line for one in self._others for line in one.explain()]]

    @property
    def _others(self) -> Sequence[Program]:
        return () if self.size_classes is None else self.size_classes.programs

    def program_for(self, sizes: Mapping[str, int]) -> Program:
        """The program of the function that has blocks for these sizes."""
        return self if self.size_classes is None else self.size_classes.program_for(sizes)

    def sizes(self, values: Sequence[Any]) -> dict[str, int]:
        """The sizes that symbols stand for, checked against the arguments."""
        if len(values) != len(self.host.arguments):
            raise ShapeError(f"@{self.name} takes {len(self.host.arguments)} arguments, got {len(values)}")
        shapes: list[tuple[int, ...] | None] = []
        for index, (number, value) in enumerate(zip(self.host.arguments, values, strict=True)):
            described, what = self.host.values[number], f"argument {index} of @{self.name}"
            if isinstance(described, host.Number):
                _check_number(what, described, value)
                shapes.append(None)
                continue
            if not isinstance(value, Tensor):
                raise DtypeError(f"{what}: expected a tensor, got {type(value).__name__}", hint="use asarray first")
            if not stores_alike(value.dtype, described.dtype):
                raise DtypeError(f"{what}: expected {described.dtype}, got {value.dtype}")
            if value.ndim != len(described.shape):
                raise ShapeError(f"{what}: expected rank {len(described.shape)}, got {value.ndim}")
            shapes.append(value.shape)
        found = self.symbols.quick(shapes)
        return self._unified(shapes) if found is None else found

    @cached_property
    def symbols(self) -> Symbols:
        described = [self.host.values[number] for number in self.host.arguments]
        return Symbols(one.shape if isinstance(one, host.Array) else None for one in described)

    def _unified(self, shapes: Sequence[tuple[int, ...] | None]) -> dict[str, int]:
        """The same by solving equations, or the error that says which of them cannot hold."""
        environment = ShapeEnvironment()
        for index, (number, shape) in enumerate(zip(self.host.arguments, shapes, strict=True)):
            for axis, actual in enumerate(shape or ()):
                expected = self.host.array(number).shape[axis]
                environment.unify(expected, actual, Origin(f"argument {index} of @{self.name}, axis {axis}"))
        return environment.sizes

    def bind(self, values: Sequence[Any], *, graph: bool = False, donated: Collection[int] = ()) -> BoundProgram:
        """The program for arrays of these sizes, strides and alignments, and for any numbers.

        With `graph`, launches that follow each other on a GPU are replayed as one graph, where that can be. The memory
        of `donated` arguments may become that of results: the caller lets go of them.
        """
        sizes = self.sizes(values)
        if self.settings is None:
            return self._interpreted()
        if (other := self.program_for(sizes)) is not self:
            bound = other.bind(values, graph=graph, donated=donated)
            self._last = other.last
            return bound
        given = [_geometry(value) if isinstance(value, Tensor) else None for value in values]
        graph = graph and self.settings.compiler.has_graphs
        found, recorded = None if graph or donated else self._rebound(values, sizes, self.settings), 0
        if found is None:
            buffers = assign_buffers(self.host, sizes, given)
            # The arena of a graph stays where it is, and so do its nodes; results may be elsewhere in each call.
            site = self._site(values, self.settings, graph)
            plan = memory_plan.plan(buffers, lend=not graph, donors=self._donors(values, buffers, site, donated))
            found = Rebound(_written(buffers, plan, site), plan, sum(one.nbytes for one in buffers.results))
            recorded = getattr(site, "recorded", 0)
            if graph and not recorded:  # nothing to replay: then its arena may as well be shared
                return self.bind(values, donated=donated)
        self._last = found.plan, found.results
        return BoundProgram(self, found.run, _memory(*self._last), len(self.kernels), sizes, given, recorded)

    def resized(self, values: Sequence[Any], sizes: Mapping[str, int] | None) -> Callable[..., Any] | None:
        """The function that runs it for arrays of other sizes; None where no earlier binding left code for these.

        Arguments are as it takes them, apart from sizes; `sizes` are what its symbols stand for, if that is known.
        """
        if self.settings is None:
            return None
        sizes = self.sizes(values) if sizes is None else sizes
        if (other := self.program_for(sizes)) is not self:
            run = other.resized(values, sizes)
            self._last = self._last if run is None else other.last
            return run
        found = self._resizing.known(values, sizes)
        if found is None:
            return None
        self._last = found.plan, found.results
        return found.run

    def _donors(
        self, values: Sequence[Any], buffers: BufferAssignment, site: Site, donated: Collection[int]
    ) -> dict[int, int]:
        if not donated or not buffers.results:
            return {}
        alignments = [value.meta.alignment if isinstance(value, Tensor) else 0 for value in values]
        return donors(buffers, self.host.kernels, donated, alignments, site.meta(buffers.results[0]).alignment)

    def _rebound(self, values: Sequence[Any], sizes: Mapping[str, int], chosen: Settings) -> Rebound | None:
        """The program bound by what earlier bindings left; None where they left nothing that serves these sizes."""

        def write(buffers: BufferAssignment, plan: memory_plan.Plan) -> Any:
            return _written(buffers, plan, self._site(values, chosen, graph=False))

        return self._resizing.bound(values, sizes, write)

    @cached_property
    def _resizing(self) -> Resizing:
        return Resizing(self.host)

    def _site(self, values: Sequence[Any], chosen: Settings, graph: bool) -> Site:
        """The device that the arguments lie on, for this program."""
        found = device_of(f"@{self.name}", values)
        if found.kind != chosen.target and any(isinstance(value, Tensor) for value in values):
            raise DeviceError(
                f"the arguments of @{self.name} lie on {found}, and it was compiled for {chosen.target}",
                hint=f"bring them over first, or compile for {found}",
            )
        if not chosen.compiler.is_asynchronous:
            return HostSite(self.codes.executables(chosen), self.world, deterministic=chosen.deterministic)
        from tessera.programs.device_site import DeviceSite
        from tessera.programs.graph_site import GraphSite
        from tessera.runtime.cuda.streams import cuda_device

        def executable(number: int, lines: tuple[int, ...]) -> Any:
            return self.codes.executable(number, chosen, lines)

        alignments = [value.meta.alignment if isinstance(value, Tensor) else 0 for value in values]
        device = found if found.is_accelerator else cuda_device(self.device)
        return (GraphSite if graph else DeviceSite)(executable, self.world, device, alignments)

    def _interpreted(self) -> BoundProgram:
        """Runs the graph itself, by what its ops mean."""
        run = self.codes.interpreter(self.world, self.device)
        bound = BoundProgram(self, run, Memory(0, 0, 0, ()), 0, {}, ())
        bound.buffers = BufferAssignment([], (), [], [])
        return bound


def _written(buffers: BufferAssignment, plan: memory_plan.Plan, site: Site) -> Callable[..., tuple[Tensor, ...]]:
    return Writer(buffers, plan, site).write()


def _memory(plan: memory_plan.Plan, results: int) -> Memory:
    return Memory(plan.nbytes, results, plan.least, plan.slots, plan.donors)


def _one_world(machine: Machine) -> Callable[[], Machine]:
    return lambda: machine


def _geometry(value: Tensor) -> Geometry:
    return value.shape, value.strides


_CLASSES: Mapping[str, tuple[type, ...]] = {"i64": (int,), "f32": (float, int), "f64": (float, int), "i1": (bool,)}


def _check_number(what: str, described: host.Number, value: Any) -> None:
    if not isinstance(value, _CLASSES[described.kind]) or (described.kind != "i1" and isinstance(value, bool)):
        raise DtypeError(f"{what}: expected a number of {described.kind}, got {value!r}")
