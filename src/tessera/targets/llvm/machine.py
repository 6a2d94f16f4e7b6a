"""LLVM text to object code: parsing, checking and code generation, with LLVM's complaints as our errors.

LLVM ends the process where code generation itself fails (an instruction it cannot select, inline assembly it cannot
read). Text that comes from outside is compiled in a process of its own.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from functools import cache, lru_cache
from threading import RLock
from typing import Any

import llvmlite
from llvmlite import binding

from tessera.errors import CompileError
from tessera.forking import fork_waits_for

llvm: Any = binding  # has no types of its own

_KNOWN = "0.50."
"""The versions of llvmlite whose own lock is known."""


def lock_of_llvm(version: str) -> AbstractContextManager[Any]:
    """The lock that is held while LLVM works, so that a fork can wait for it.

    llvmlite has one for each of its calls, which other users of it hold, too; it has no public name. Of versions that
    are not known there is one of ours: then a fork waits for what is compiled here, and not for those others.
    """
    return llvm.ffi.lib._lock if version.startswith(_KNOWN) else RLock()  # noqa: SLF001


_lock = lock_of_llvm(llvmlite.__version__)
fork_waits_for(_lock, rank=1)

_TRIPLE = re.compile(r'^\s*target\s+triple\s*=\s*"([^"]*)"', re.MULTILINE)
_LAYOUT = re.compile(r"^\s*target\s+datalayout\s*=", re.MULTILINE)
_PLACE = re.compile(r"<string>:(\d+):(\d+): error: ([^\n]*)")

# LLVM's names for passes over a module, and what llvmlite calls them.
_PASSES = {
    "adce": "add_aggressive_dce_pass",
    "always-inline": "add_always_inliner_pass",
    "constmerge": "add_constant_merge_pass",
    "dce": "add_dead_code_elimination_pass",
    "dse": "add_dead_store_elimination_pass",
    "globaldce": "add_global_dead_code_eliminate_pass",
    "globalopt": "add_global_opt_pass",
    "instcombine": "add_instruction_combine_pass",
    "ipsccp": "add_ipsccp_pass",
    "jump-threading": "add_jump_threading_pass",
    "loop-rotate": "add_loop_rotate_pass",
    "loop-simplify": "add_loop_simplify_pass",
    "loop-unroll": "add_loop_unroll_pass",
    "mergefunc": "add_merge_functions_pass",
    "newgvn": "add_new_gvn_pass",
    "reassociate": "add_reassociate_pass",
    "sccp": "add_sccp_pass",
    "simplifycfg": "add_simplify_cfg_pass",
    "sroa": "add_sroa_pass",
    "tailcallelim": "add_tail_call_elimination_pass",
}
_PIPELINES = {f"default<O{level}>": level for level in range(4)}


def compile_text(text: str, *, cpu: str, features: str, opt: int = 3, passes: str | None = None) -> bytes:
    """A relocatable object, position independent, in the small code model.

    The text's own triple counts; without one it is compiled for this machine. `passes` are LLVM's names with commas
    between, such as "always-inline,sroa" or "default<O3>"; without them only code generation runs.
    """
    with _lock:
        machine = _machine(_triple_of(text), cpu, features, opt)
        with _module(text, machine, passes) as module:
            return machine.emit_object(module)


def assembly(text: str, *, cpu: str, features: str, opt: int = 3, passes: str | None = None) -> str:
    """The instructions that `compile_text` would give, for reading."""
    with _lock:
        machine = _machine(_triple_of(text), cpu, features, opt)
        with _module(text, machine, passes) as module:
            return machine.emit_assembly(module)


@cache
def _initialize() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    llvm.initialize_native_asmparser()


def _triple_of(text: str) -> str:
    return _stated_triple(text) or llvm.get_default_triple()


def _stated_triple(text: str) -> str | None:
    """The triple that a text names. Most name none, and looking for a word is much quicker than for a pattern."""
    found = _TRIPLE.search(text) if "triple" in text else None
    return found[1] if found else None


# llvmlite serialises all calls into LLVM, so threads may share a machine.
@lru_cache(maxsize=32)
def _machine(triple: str, cpu: str, features: str, opt: int) -> Any:
    _initialize()
    try:
        target = llvm.Target.from_triple(triple)
    except RuntimeError as error:
        raise CompileError(f"LLVM has no target for the triple {triple!r}: {error}") from None
    if triple.startswith("x86_64"):
        # A processor that LLVM does not know has no 64-bit mode for it, and it would end the process.
        features = f"+64bit,{features}" if features else "+64bit"
    return target.create_target_machine(cpu=cpu, features=features, opt=opt, reloc="pic", codemodel="small")


@contextmanager
def _module(text: str, machine: Any, passes: str | None) -> Generator[Any]:
    """The module, alive within the `with` statement.

    Objects of LLVM refer to each other, and a garbage collector would take them away in any order: each is closed here.
    """
    # Alignments left out of the text follow the layout while it is parsed, so setting it afterwards is too late. It
    # goes onto the first line: the numbers of lines in messages stay those of the text.
    ahead = "" if "datalayout" in text and _LAYOUT.search(text) else f'target datalayout = "{machine.target_data}" '
    ahead += "" if _stated_triple(text) else f'target triple = "{machine.triple}" '
    with llvm.create_context() as context:
        try:
            parsed = llvm.parse_assembly(ahead + text, context)
        except RuntimeError as error:
            raise _parse_error(str(error), text, len(ahead)) from None
        with parsed as module:
            _verify(module)
            if passes is not None:
                _run(passes, module, machine)
            yield module


def _verify(module: Any) -> None:
    try:
        module.verify()
    except RuntimeError as error:
        first, *others = str(error).strip().splitlines()
        story = [line.strip() for line in others]
        raise CompileError(f"LLVM's verifier refuses the module: {first}", story=story) from None


def _parse_error(said: str, text: str, ahead: int) -> CompileError:
    found = _PLACE.search(said)
    if found is None:
        return CompileError(f"LLVM cannot parse the module: {said.strip()}")
    line, column = int(found[1]), int(found[2]) - (ahead if found[1] == "1" else 0)
    written = text.rstrip("\n").split("\n")
    story = [written[line - 1], f"{' ' * (column - 1)}^"] if line <= len(written) else ["at the end of the text"]
    return CompileError(f"LLVM cannot parse line {line}, column {column} of the module: {found[3]}", story=story)


def _run(passes: str, module: Any, machine: Any) -> None:
    for name in passes.split(","):
        if name not in _PASSES and name not in _PIPELINES:
            raise CompileError(
                f"expected names of LLVM passes, got {name!r}", hint=f"known: {', '.join([*_PASSES, *_PIPELINES])}"
            )
    for name in passes.split(","):
        level = _PIPELINES.get(name, 2)
        with llvm.create_pipeline_tuning_options(level) as options:
            options.loop_vectorization = options.slp_vectorization = level > 1
            with llvm.create_pass_builder(machine, options) as builder, _manager(name, builder) as manager:
                manager.run(module, builder)


def _manager(name: str, builder: Any) -> Any:
    if name in _PIPELINES:
        return builder.getModulePassManager()
    manager = llvm.create_new_module_pass_manager()
    getattr(manager, _PASSES[name])()
    return manager
