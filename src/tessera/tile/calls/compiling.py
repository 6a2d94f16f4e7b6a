"""From a tile function to machine code: the compilers of CPUs and GPUs, and the launch plans of what they made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from xdsl.dialects.builtin import IndexType, ModuleOp, StringAttr
from xdsl.ir import Attribute, SSAValue

from tessera import knobs
from tessera.errors import CompileError, DeviceError, SourceSpan
from tessera.internal_errors import boundary
from tessera.interpreters.core.engine import symbol_in
from tessera.ir import text
from tessera.ir.common.elements import dtype_of
from tessera.ir.common.locations import span_of
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.reach import covers
from tessera.ir.tile.types import ViewType
from tessera.runtime.program.launch_plan import ArrayArgument, Failure, NumberArgument, Plan
from tessera.tile.calls.guarded_kernel import GuardedKernel, loaded
from tessera.tile.calls.instance import Instance
from tessera.tile.calls.settings import Settings
from tessera.transforms.checks.host_checks import host_checks
from tessera.transforms.checks.instrument import check_of, title
from tessera.transforms.core.dumping import Shown
from tessera.transforms.core.facts import Facts

if TYPE_CHECKING:
    from tessera.targets.cuda.compile import CompiledPtx as DeviceProgram


class Source(NamedTuple):
    """A tile function of a module, and what its schedule says of threads; its last `outputs` arguments are results."""

    module: ModuleOp
    name: str
    inputs: int
    outputs: int
    warps: int | None = None
    stages: int | None = None
    follows: bool = False
    """Whether it is one of several that are launched one after the other."""

    @staticmethod
    def of(instance: Instance) -> Source:
        """The tile function of an instance."""
        schedule = instance.schedule
        count = len(instance.paths), len(instance.outputs)
        return Source(instance.module, instance.name, *count, schedule.warps, schedule.stages)


class Machined(NamedTuple):
    """A compiled tile function: its launch plan, its code, facts that it depends on, and the seconds of each stage."""

    plan: Plan
    code: bytes
    guards: Facts
    seconds: Mapping[str, float]


def compiled(
    instance: Instance, chosen: Settings, facts: Facts, lines: Mapping[int, bool] = MappingProxyType({})
) -> tuple[GuardedKernel, bytes]:
    """The program of an instance, for arguments with these facts, loaded; and its machine code, to be kept.

    `lines` says of each array whether its rows lie well for a GPU.
    """
    Shown(instance.module).show(0, "kernel", instance.module)
    made = machined(Source.of(instance), chosen, facts, lines)
    asked = lines if chosen.target == "cuda" else None
    program = GuardedKernel.of(instance, loaded(made.plan, made.code), made.guards, asked)
    log_compile(instance.name, ", ".join(map(str, program.guards)), made.seconds)
    return program, made.code


def log_compile(name: str, guards: str, seconds: Mapping[str, float]) -> None:
    """Says what was compiled, for which arguments, and what it cost, where recompiles are logged."""
    if "recompiles" in knobs.logs.value:
        import logging

        laps = ", ".join(f"{stage} {1000 * spent:.0f} ms" for stage, spent in seconds.items())
        logging.getLogger("tessera.recompiles").warning("compiled %s for %s: %s", name, guards or "no guards", laps)


def machined(
    source: Source, chosen: Settings, facts: Facts, lines: Mapping[int, bool] = MappingProxyType({})
) -> Machined:
    """Machine code of a tile function, for arguments with these facts."""
    with boundary(f"@{source.name}", f"machine code for {chosen.level}", partial(text.write, source.module)):
        return _for_gpu(source, chosen, facts, lines) if chosen.target == "cuda" else _for_cpu(source, chosen, facts)


def _for_cpu(source: Source, chosen: Settings, facts: Facts) -> Machined:
    # Compilers are large: each is loaded when it is needed.
    from tessera.targets.cpu.compile import compile_kernel

    made = compile_kernel(
        source.module,
        source.name,
        level=chosen.level,
        optimization=chosen.optimization,
        checks=chosen.checks,
        facts=facts,
    )
    words = Words(made.layout.first, made.layout.grid, made.layout.words)
    return Machined(plan_of(source, words, made.messages), made.image, made.guards, made.seconds)


SPILL_RETRIES = 4


def _for_gpu(source: Source, chosen: Settings, facts: Facts, lines: Mapping[int, bool]) -> Machined:
    """Compiles, and compiles again with less in registers, until a thread's values fit; the last one runs anyhow."""
    from tessera.targets.cuda.compile import compile_kernel as compile_for_gpu

    # Results are made by the launch, and are as they should be, unless it is said that they are not.
    arguments = source.inputs + source.outputs
    row_aligned = [index for index in range(arguments) if lines.get(index, index >= source.inputs)]
    found: Machined | None = None
    for spill_retry in range(SPILL_RETRIES):
        made = compile_for_gpu(
            source.module,
            source.name,
            arch=chosen.level,
            warps=source.warps,
            stages=source.stages,
            optimization=chosen.optimization,
            checks=chosen.checks,
            facts=facts,
            row_aligned=row_aligned,
            spill_retry=spill_retry,
            ordered=chosen.deterministic,
            follows=source.follows,
        )
        code = made.ptx.encode()
        if found is not None and code == found.code:
            break
        plan = _device_plan(source, made)
        spilled = _spilled(plan, code)
        assert plan.device is not None
        plan = replace(plan, device=replace(plan.device, local=max(made.local, spilled)))
        found = Machined(plan, code, made.guards, made.seconds)
        if spilled <= made.local:
            break
    assert found is not None
    return found


def _device_plan(source: Source, made: DeviceProgram) -> Plan:
    from tessera.tile.calls.host_plan import launch_of

    block = made.block
    plan = plan_of(source, Words(block.first, block.grid, block.words), made.messages)
    assert made.function is not None
    launch = launch_of(made.function, made)
    checks = tuple((one.condition, Failure(one.message, one.span)) for one in made.checks)
    return replace(plan, grid=made.grid, device=launch, block_bytes=block.size, checks=checks)


def _spilled(plan: Plan, code: bytes) -> int:
    """Bytes of local memory that a thread needs, as the GPU's assembler found; 0 where there is no GPU to ask.

    Where ptxas says that there are none, the GPU is not asked: a process that compiles would take it from callers. But
    code that is needed soon is not assembled twice: in a process that runs kernels, the driver loads it anyhow.
    """
    from tessera.runtime.cuda import driver
    from tessera.runtime.cuda.context import Context
    from tessera.runtime.cuda.modules import is_fast_compile, look_at, stack_of

    try:
        if driver.device_count() == 0:
            return 0
    except DeviceError:
        return 0
    context = Context.of(0)
    if not (context.is_open and is_fast_compile(code)) and stack_of(code, plan.name, context) == 0:
        return 0
    return look_at(0, code, f"@{plan.name}").function(plan.name).attributes.local


class Words(NamedTuple):
    """The words of a program's arguments: the first of each, of the grid's extents, and how many there are."""

    first: Sequence[int]
    grid: int
    total: int


def plan_of(source: Source, words: Words, messages: tuple[str, ...]) -> Plan:
    """How to launch a compiled tile function."""
    function = symbol_in(source.module, source.name, tile.FuncOp)
    stores = [op for op in function.body.walk() if isinstance(op, tile.StoreOp | tile.AtomicOp)]
    written = {tile.base_of(op.view) for op in stores}
    ordered = any(isinstance(op, tile.AtomicOp) and op.shows_order for op in stores)
    memories = [tile.memory_of(one) for one in function.arguments[: source.inputs]]
    changed = {tile.memory_of(one) for one in written}
    apart = tuple(
        (first, second)
        for (first, one), (second, other) in combinations(enumerate(memories), 2)
        if one is not other and (one in changed or other in changed) and _are_arrays(one, other)
    )
    arguments: list[ArrayArgument | NumberArgument] = []
    for argument, shape, word in zip(function.arguments, function.shapes, words.first, strict=True):
        type_ = argument.type
        if isinstance(type_, ViewType):
            arguments.append(ArrayArgument(word, type_.dtype, tuple(shape.data), argument in written))
        else:
            arguments.append(NumberArgument(word, _kind_of(type_)))
    return Plan(
        source.name,
        tuple(arguments),
        source.outputs,
        tuple(function.grid.data),
        words.grid,
        words.total,
        tuple(_failures(function, messages)),
        ordered,
        apart=apart,
        checks=tuple((one.condition, Failure(one.message, one.span)) for one in host_checks(function)),
        covers=covers(function),
    )


def _are_arrays(*values: SSAValue) -> bool:
    return all(isinstance(value.type, ViewType) for value in values)


def _kind_of(type_: Attribute) -> str:
    name = "i64" if isinstance(type_, IndexType) else dtype_of(type_).name
    kind = {"bool": "i1"}.get(name, name)
    if kind not in ("i64", "f32", "f64", "i1"):
        raise CompileError(f"a number of {name} cannot be passed to machine code", hint="pass it as an array")
    return kind


def _failures(function: tile.FuncOp, messages: tuple[str, ...]) -> Iterator[Failure]:
    """The failures that programs report, with the exact source: the machine code names only where it begins."""
    spans: dict[str, SourceSpan] = {}
    # Ops that begin at one location: checks say which of them it was.
    titled: dict[tuple[str, str], SourceSpan] = {}
    asserted: dict[str, str | None] = {}
    for op in function.body.walk():
        if (span := span_of(op.location)) is not None:
            spans.setdefault(str(span), span)
            titled.setdefault((str(span), title(op)), span)
        if isinstance(op, tile.AssertOp):
            check = op.attributes.get(tile.CHECK)
            words = op.message.data if span is None else f"{span}: {op.message.data}"
            asserted[words] = check.data if isinstance(check, StringAttr) else None
    for message in messages:
        location = next((location for location in spans if message.startswith(f"{location}: ")), None)
        span, words = (None, message) if location is None else (spans[location], message.removeprefix(f"{location}: "))
        check = asserted[message] if message in asserted else check_of(words)
        if message in asserted and check is None:
            words = f"assertion failed: {words}"
        elif message not in asserted and check is not None and location is not None:
            span = titled.get((location, words.partition(" ")[0].removeprefix("tile.")), span)
        yield Failure(words, span, check)
