"""`Target`: a kind of machine that kernels are compiled for, as a value; and the targets there are, by name.

A package brings a target of its own by an entry point of the group `tessera.targets`: its name, and a `Target`. What a
target does at run time stands above compilers, so it is named, as `module:attribute`, and loaded when it is needed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from functools import cache
from importlib import import_module, metadata
from typing import TYPE_CHECKING, Any

from tessera.compiler.code_counts import CodeCounts
from tessera.compiler.options import CompileOptions
from tessera.device_names import TARGETS
from tessera.errors import CompileError, DeviceError, ResourceError
from tessera.transforms.core.facts import Facts

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass

    from tessera.compiler.artifact import Artifact, LoweredKernel, Source
    from tessera.ir.common.schedule_attributes import Config
    from tessera.ir.schedule.dialect import RegionOp
    from tessera.ir.tile.dialect import FuncOp
    from tessera.transforms.core.stages import Stage

Local = Callable[[str, bytes], int]
"""Bytes of local memory that a thread of a kernel needs, as the machine's own assembler finds for its code."""


class Target(ABC):
    """A kind of machine: instruction sets, passes, the compiler, blocks to choose from, and how code is run."""

    name: str
    levels: tuple[str, ...]
    """Its instruction sets."""
    executable: str
    """`module:attribute` of what is called with a launch plan and code, and gives a program that can be bound."""
    local: str | None = None
    """`module:attribute` of a `Local`, where there is one."""
    gemv_rows: int = 0
    """Up to how many rows a matmul is fused with what its operands are made of."""
    instances: int = 0
    """Program instances that keep it busy: long folds with fewer are divided. 0 where few are enough."""
    tile_rows: int = 0
    """Matrices of fewer rows that share their right operands become rows of one: the rows of a matrix unit's tile."""
    is_asynchronous: bool = False
    """Whether launches return before they are done: they run on streams of a device with memory of its own."""
    has_graphs: bool = False
    """Whether launches that follow each other can be recorded, and replayed as one."""
    has_warps: bool = False
    """Whether programs run in warps, of which schedules say how many, with memory that blocks have to fit."""
    keeps_row_alignment: bool = False
    """Whether code is made for arrays whose rows are aligned, or are not, so that calls look at how they lie."""
    compiles_quickly: bool = False
    """Whether code with little optimization is compiled in a fraction of the time."""

    @abstractmethod
    def default_level(self) -> str:
        """The instruction set of this machine, or the one that is compiled for where there is none."""

    def unavailable(self) -> str | None:
        """Why kernels have no machine code for this machine's own arrays; None where they have."""
        return None

    def level_on(self, index: int) -> str:
        """The instruction set to compile for on one of the devices of this kind."""
        return self.default_level()

    def why_not_here(self, level: str) -> str | None:
        """Why code for an instruction set cannot be run on this machine; None where it can."""
        return None

    def plain_level(self, level: str) -> str:
        """An instruction set whose code runs under `level`, too, and is faster to compile for."""
        return level

    def identity(self, level: str, deterministic: bool) -> tuple[object, ...]:
        """What machine code depends on besides the level, as keys have it."""
        return self.name, deterministic

    def timing_model(self, level: str) -> str | None:
        """The name of the model that predicts how long programs take, where one was measured."""
        return None

    @abstractmethod
    def lower(
        self, source: Source, options: CompileOptions, facts: Facts, lines: Mapping[int, int], local: Local | None
    ) -> LoweredKernel:
        """A tile function brought down to the text that machine code is made of, for arguments with these facts.

        `lines` says how rows of arrays lie.
        """

    def emit(self, module: ModuleOp, name: str, options: CompileOptions) -> str:
        """What the emitter writes of a function that is at this target's own level already."""
        raise CompileError(f"the target {self.name} has no level of its own", hint="give it tile functions")

    def assembly(self, written: str, options: CompileOptions) -> str:
        """The assembly of what the emitter wrote."""
        raise CompileError(f"the target {self.name} has no assembly", hint="read what its emitter writes")

    def compile(
        self, source: Source, options: CompileOptions, facts: Facts, lines: Mapping[int, int], local: Local | None
    ) -> Artifact:
        """Machine code of a tile function."""
        return self.lower(source, options, facts, lines, local).finish()

    def counts(self, source: Source, made: LoweredKernel, options: CompileOptions) -> CodeCounts:
        """The counts of a kernel's code, its registers and its memory."""
        return CodeCounts.unknown(f"the target {self.name} does not count what its code has")

    def counts_of_text(self, assembly: str) -> Mapping[str, CodeCounts] | None:
        """The counts of all kernels in a text of assembly, by their names; None of a text that is not of this kind."""
        return None

    @abstractmethod
    def passes(self) -> Mapping[str, type[ModulePass]]:
        """The passes of this target, by name."""

    def blocks_for(self, region: RegionOp, level: str, hints: Mapping[str, int]) -> list[Config]:
        """The blocks worth trying for a region around a matmul, the best first; `hints` are sizes of symbols."""
        from tessera.ir.common.schedule_attributes import Config

        return [Config(block=(64, 64, 64) if region.kind.data == "matmul" else (64, 64))]

    def models_blocks(self, level: str) -> bool:
        """Whether a model chooses blocks for kernels that leave them open."""
        return False

    def modelled_blocks(
        self, function: FuncOp, probe: tuple[int, int, int], row_aligned: Collection[int], fixed: tuple[int, ...]
    ) -> list[tuple[tuple[int, ...], float, bool]]:
        """The blocks worth having for a tile function, the best first, with the clocks of a program instance.

        It was traced with the block `probe`, whose sizes occur nowhere else, and is rewritten. Blocks begin with the
        sizes that are `fixed`.
        """
        return []

    def is_over_budget(self, error: ResourceError) -> bool:
        """Whether an error says that a kernel is too large under its schedule, so that a smaller one may fit."""
        return False

    def check_budget(self, source: Source, level: str) -> None:  # noqa: B027  (others have no budget)
        """Raises a ResourceError for a kernel that is too large under its schedule."""

    def get_ready(self) -> None:  # noqa: B027  (small compilers are loaded in no time)
        """Loads the compiler, before the first kernel."""

    def warm_up(self, options: CompileOptions) -> None:
        """Does once what a process needs before its first compile."""
        self.get_ready()

    def graph_stages(self) -> dict[str, Stage]:
        """Stages over a module of tile functions and launches, behind those of all targets."""
        return {}

    def load(self, plan: Any, code: bytes) -> Any:
        """A program that can be bound to arguments."""
        return named(self.executable)(plan, code)

    def get_on_device(self, program: Any, index: int, *, keep: bool = True) -> None:  # noqa: B027  (a processor runs it where it is)
        """Brings a loaded program to one of the devices of this kind: its own assembler is done with it then.

        With `keep` false the assembler runs even if its result is known, and the result is dropped, to be timed.
        """

    def local_memory(self) -> Local | None:
        return None if self.local is None else named(self.local)


@cache
def named(reference: str) -> Any:
    """What `module:attribute` names."""
    module, _, attribute = reference.partition(":")
    return getattr(import_module(module), attribute)


_TARGETS: dict[str, Target] = {}


def register(target: Target) -> None:
    """Makes a target known by its name, in this process."""
    _TARGETS[target.name] = target


def target_names() -> list[str]:
    """The names of all targets: those that ship, and those of other packages."""
    found = dict.fromkeys([*TARGETS, *_TARGETS])
    return [*found, *(one.name for one in _entry_points() if one.name not in found)]


def is_target(name: str) -> bool:
    """Whether a target has this name: other packages are asked last."""
    return name in TARGETS or name in _TARGETS or any(one.name == name for one in _entry_points())


@cache
def _entry_points() -> tuple[metadata.EntryPoint, ...]:
    return tuple(metadata.entry_points(group="tessera.targets"))


def target_named(name: str) -> Target:
    """The target of a name."""
    if (found := _TARGETS.get(name)) is not None:
        return found
    if name in TARGETS:
        made = named(TARGETS[name])
    else:
        given = next((one for one in _entry_points() if one.name == name), None)
        if given is None:
            raise DeviceError(
                f"there is no target {name!r}",
                hint=f"targets are {', '.join(target_names())}; packages bring more by entry points of tessera.targets",
            )
        made = given.load()
    return _TARGETS.setdefault(name, made)


def target_and_level(name: str) -> tuple[Target, str]:
    """The target that has an instruction set, and that one; of the name of a target, the one that it takes itself."""
    if is_target(name):
        return target_named(name), target_named(name).default_level()
    return target_with_level(name), name


def target_with_level(level: str) -> Target:
    """The target that has an instruction set."""
    targets = [target_named(name) for name in target_names()]
    found = next((one for one in targets if level in one.levels), None)
    if found is None:
        known = "; ".join(f"{', '.join(one.levels)} of {one.name}" for one in targets)
        raise DeviceError(f"no target has the instruction set {level!r}", hint=f"there are {known}")
    return found
