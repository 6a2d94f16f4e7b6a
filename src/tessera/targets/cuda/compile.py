"""From nv functions to PTX, in named stages."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from tessera.targets.cuda.emit import emit
from tessera.targets.cuda.emitter import Block
from tessera.targets.llvm import machine

FEATURES = {"sm_80": "+ptx80", "sm_90": "+ptx80", "sm_90a": "+ptx80"}
TRIPLE = 'target triple = "nvptx64-nvidia-cuda"\n'


@dataclass(frozen=True)
class Program:
    """PTX, and what a launcher has to know of it."""

    name: str
    ptx: str
    block: Block
    threads: int
    shared: int
    messages: tuple[str, ...]


def ptx_of(text: str, arch: str) -> str:
    """LLVM text as PTX."""
    return machine.assembly(TRIPLE + text, cpu=arch, features=FEATURES[arch])


def compile_lowered(module: ModuleOp, name: str, *, arch: str = "sm_90a") -> Program:
    """Compiles a function that is at the nv level already, written by passes or by hand."""
    from tessera.interpreters.engine import symbol_in
    from tessera.targets.cuda import dialect as nv

    emitted = emit(module, name)
    threads = symbol_in(module, name, nv.FuncOp).thread_count
    return Program(name, ptx_of(emitted.text, arch), emitted.block, threads, emitted.shared, emitted.messages)
