"""What is compiled level by level: a kernel or a jitted function, traced for certain arguments."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from xdsl.dialects.builtin import ModuleOp

from tessera.compiler.artifact import Source
from tessera.errors import DeviceError
from tessera.tile.calls.settings import Settings
from tessera.transforms.core.compile_report import CompileReport, Refusal
from tessera.transforms.core.facts import Facts
from tessera.transforms.pipeline import Stage


@dataclass(frozen=True)
class Part:
    """A tile function as its target compiles it: for which facts, for which rows of arrays, and who launches it."""

    source: Source
    facts: Facts
    lines: Mapping[int, int]
    number: int = 0
    """Of the kernel in its program; a kernel that is launched on arrays that lie otherwise is several parts."""
    launches: int = 1


@dataclass(frozen=True)
class Loaded:
    """A part that was compiled and loaded."""

    part: Part
    executable: Any
    guards: Facts
    report: CompileReport


class AtTiles(NamedTuple):
    """What the stages down to the tile level made: the module, the text of each level, the fusions they refused."""

    module: ModuleOp
    texts: Mapping[str, str]
    refusals: Sequence[Refusal]


class Subject(ABC):
    """A function to compile, with the arguments that it was traced for."""

    name: str
    sizes: Mapping[str, int]
    """What the symbols of its module stand for."""

    @abstractmethod
    def graph(self) -> ModuleOp:
        """Its graph, before all stages."""

    @abstractmethod
    def stages(self, chosen: Settings) -> Mapping[str, Stage]:
        """The stages down to the tile level."""

    @abstractmethod
    def retraced(self, options: Mapping[str, Any], chosen: Settings) -> Subject:
        """The same under another schedule."""

    @abstractmethod
    def parts(self, module: ModuleOp, chosen: Settings) -> Sequence[Part]:
        """The tile functions of a module at the tile level."""

    @abstractmethod
    def program(self, tiles: AtTiles, chosen: Settings, loaded: Sequence[Loaded]) -> tuple[Any, Callable[..., Any]]:
        """The program of its loaded parts, and a function that calls it."""


def refuse_other_arguments(name: str, guards: Sequence[object]) -> DeviceError:
    """The error of a call with arguments that a program does not serve."""
    words = ", ".join(map(str, guards)) or "none"
    return DeviceError(f"{name} was compiled for arguments of other kinds or sizes", hint=f"its guards: {words}")
