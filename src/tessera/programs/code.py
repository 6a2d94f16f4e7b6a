"""Machine code of a program's kernels: found in this process or on the disk, or compiled from their tile functions.

Kernels are kept by what they are, not by the program that they are in: programs that need the same one share it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from tessera.compiler.launch_plan import Plan
from tessera.interpreters.core.machine import Machine
from tessera.programs import host
from tessera.runtime.cache import store as cache
from tessera.runtime.cache.build import build
from tessera.runtime.device.device import CPU, Device
from tessera.runtime.tensor.tensor import Tensor
from tessera.tile.calls.guarded_kernel import loaded
from tessera.tile.calls.program_cache import WORK
from tessera.tile.calls.settings import Settings, target_of
from tessera.transforms.core.compile_report import CompileReport

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from tessera.runtime.cuda.executable import CudaExecutable
    from tessera.runtime.program.executable import Executable

_LOADED: WeakValueDictionary[str, Executable | CudaExecutable] = WeakValueDictionary()
_REPORTS: WeakKeyDictionary[Any, CompileReport] = WeakKeyDictionary()
"""How kernels were compiled, and which ways were refused, by the executables of `_LOADED`."""


class Codes:
    """The kernels of one program, and the modules that they are compiled from: as IR, or as text until it is needed."""

    def __init__(
        self,
        name: str,
        kernels: Sequence[host.Kernel],
        graph_text: str,
        tile_text: str,
        graph_module: ModuleOp | None = None,
        tile_module: ModuleOp | None = None,
    ) -> None:
        self.name = name
        self.kernels = kernels
        self.graph_text, self.tile_text = graph_text, tile_text
        self._graph_module, self._tile_module = graph_module, tile_module
        self._found: dict[tuple[int, Settings, tuple[int, ...] | None], Executable | CudaExecutable] = {}
        self.compiled = 0
        """How many kernels were compiled here, and not found."""

    @property
    def graph_module(self) -> ModuleOp:
        if self._graph_module is None:
            self._graph_module = _read(self.graph_text)
        return self._graph_module

    @property
    def tile_module(self) -> ModuleOp:
        if self._tile_module is None:
            self._tile_module = _read(self.tile_text)
        return self._tile_module

    def executable(
        self, number: int, chosen: Settings, lines: tuple[int, ...] | None = None
    ) -> Executable | CudaExecutable:
        """A kernel for a target. On a GPU `lines` says along which axis rows of each array are aligned."""
        found = self._found.get((number, chosen, lines))
        if found is None:
            with WORK.compiling():
                found = self._found.get((number, chosen, lines)) or self._made(number, chosen, lines)
                self._found[number, chosen, lines] = found
        return found

    def keep(
        self, number: int, chosen: Settings, lines: tuple[int, ...] | None, executable: Any, report: CompileReport
    ) -> None:
        """Takes over the executable of a kernel that was compiled elsewhere."""
        _REPORTS[executable] = report
        self._found[number, chosen, lines] = executable

    def reports(self) -> list[tuple[str, CompileReport]]:
        """How each kernel that was asked for so far was compiled, by its name."""
        found = [(self.kernels[key[0]].name, one) for key, one in list(self._found.items())]
        return list({(name, id(one)): (name, _REPORTS.get(one, CompileReport())) for name, one in found}.values())

    @property
    def made(self) -> list[Executable | CudaExecutable]:
        """All executables that were asked for so far, in the order of their kernels."""
        found = list(self._found.items())
        return [executable for _, executable in sorted(found, key=lambda one: (one[0][0], one[0][2] or ()))]

    @property
    def nbytes(self) -> int:
        """The size of all machine code that was asked for so far."""
        return sum(found.nbytes for found in list(self._found.values()))

    def executables(self, chosen: Settings) -> list[Any]:
        """All kernels, for a CPU."""
        return [self.executable(number, chosen) for number in range(len(self.kernels))]

    def _made(self, number: int, chosen: Settings, lines: tuple[int, ...] | None) -> Executable | CudaExecutable:
        kernel, compiler = self.kernels[number], build()
        key = cache.key_of(
            "tile function", compiler, target_of(chosen), kernel.hash, kernel.warps, kernel.stages, lines
        )
        found = _LOADED.get(key)
        if found is not None:
            _REPORTS[found].demand(kernel.name)
        data = cache.shared().get(key) if found is None and compiler is not None else None
        if found is None and data is not None:
            found = _decoded(data, chosen.target)
            if found is not None:
                _REPORTS[found].tell(kernel.name)
        if found is None:
            from tessera.programs.machine_code import machine_code

            made = machine_code(self.tile_module, kernel, chosen, lines)
            self.compiled += 1
            if compiler is not None:
                head = {"plan": made.plan.encoded(), "report": made.report.encoded()}
                cache.shared().put(key, cache.packed(head, made.code))
            found = loaded(made.plan, made.code, chosen.target)
            _REPORTS[found] = made.report
        _LOADED[key] = found
        return found

    def interpreter(self, world: Callable[[], Machine], device: Device | None) -> Callable[..., tuple[Tensor, ...]]:
        """A function that runs the graph by what its ops mean; arrays of other devices come to the host and go back."""
        from tessera.programs.interpreting import interpreted

        return interpreted(self.graph_module, self.name, world, device or CPU)


def _decoded(data: bytes, target: str) -> Executable | CudaExecutable | None:
    try:
        head, code = cache.unpacked(data)
        report = CompileReport.decoded(head["report"])
        found = loaded(Plan.decoded(head["plan"]), code, target)
        _REPORTS[found] = report
        return found
    except cache.UNREADABLE:
        return None


def _read(text: str) -> ModuleOp:
    from tessera.ir import text as texts

    return texts.read(text)
