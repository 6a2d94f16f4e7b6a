"""`Target`: a kind of machine that kernels are compiled for, as a value; and the targets there are, by name.

A package brings a target of its own by an entry point of the group `tessera.targets`: its name, and a `Target`. What a
target does at run time stands above compilers, so it is named, as `module:attribute`, and loaded when it is needed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module, metadata
from typing import TYPE_CHECKING, Any

from tessera.compiler.options import CompileOptions
from tessera.errors import DeviceError
from tessera.transforms.core.facts import Facts

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

    from tessera.compiler.artifact import Artifact, Source
    from tessera.ir.common.schedule_attributes import Config
    from tessera.ir.schedule.dialect import RegionOp
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

    @abstractmethod
    def default_level(self) -> str:
        """The instruction set of this machine, or the one that is compiled for where there is none."""

    @abstractmethod
    def compile(
        self, source: Source, options: CompileOptions, facts: Facts, lines: Mapping[int, bool], local: Local | None
    ) -> Artifact:
        """Machine code of a tile function, for arguments with these facts; `lines` says how rows of arrays lie."""

    @abstractmethod
    def texts(self, source: Source, options: CompileOptions) -> tuple[str, str]:
        """What the emitter writes of a tile function, and the assembly of it."""

    @abstractmethod
    def passes(self) -> Mapping[str, type[ModulePass]]:
        """The passes of this target, by name."""

    def blocks_for(self, region: RegionOp, level: str, hints: Mapping[str, int]) -> list[Config]:
        """The blocks worth trying for a region around a matmul, the best first; `hints` are sizes of symbols."""
        from tessera.ir.common.schedule_attributes import Config

        return [Config(block=(64, 64, 64) if region.kind.data == "matmul" else (64, 64))]

    def graph_stages(self) -> dict[str, Stage]:
        """Stages over a module of tile functions and launches, behind those of all targets."""
        return {}

    def load(self, plan: Any, code: bytes) -> Any:
        """A program that can be bound to arguments."""
        return named(self.executable)(plan, code)

    def local_memory(self) -> Local | None:
        return None if self.local is None else named(self.local)


@cache
def named(reference: str) -> Any:
    """What `module:attribute` names."""
    module, _, attribute = reference.partition(":")
    return getattr(import_module(module), attribute)


_REFERENCES: dict[str, str] = {"cpu": "tessera.targets.cpu.target:CPU", "cuda": "tessera.targets.cuda.target:CUDA"}
_TARGETS: dict[str, Target] = {}


def register(target: Target) -> None:
    """Makes a target known by its name, in this process."""
    _TARGETS[target.name] = target


def target_names() -> list[str]:
    """The names of all targets: those that ship, and those of other packages."""
    found = dict.fromkeys([*_REFERENCES, *_TARGETS])
    return [*found, *(one.name for one in _entry_points() if one.name not in found)]


@cache
def _entry_points() -> tuple[metadata.EntryPoint, ...]:
    return tuple(metadata.entry_points(group="tessera.targets"))


def target_named(name: str) -> Target:
    """The target of a name."""
    if (found := _TARGETS.get(name)) is not None:
        return found
    if name in _REFERENCES:
        made = named(_REFERENCES[name])
    else:
        given = next((one for one in _entry_points() if one.name == name), None)
        if given is None:
            raise DeviceError(
                f"there is no target {name!r}",
                hint=f"targets are {', '.join(target_names())}; packages bring more by entry points of tessera.targets",
            )
        made = given.load()
    return _TARGETS.setdefault(name, made)
