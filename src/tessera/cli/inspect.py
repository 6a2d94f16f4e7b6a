"""`tessera inspect file.py:name`: a kernel or a jitted function at every level, with source lines beside the IR.

With a target, also the way it is compiled for it, with what was refused.
"""

from __future__ import annotations

import linecache
import re
import runpy
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

import tessera as ts
from tessera import knobs
from tessera.compile.example_arguments import example_arguments
from tessera.compiler.artifact import Source
from tessera.compiler.target import target_and_level
from tessera.device_names import HOST
from tessera.errors import CompileError, ResourceError
from tessera.ir import text
from tessera.lang.calls.methods import Method
from tessera.lang.jit import Jitted
from tessera.programs import Program, compile_graph
from tessera.programs.machine_code import source_in
from tessera.targets import text as targets_text
from tessera.tile.calls.compiling import source_of
from tessera.tile.calls.function import Kernel
from tessera.tile.calls.instance import Instance
from tessera.tile.calls.levels import lower_through
from tessera.tile.calls.settings import Settings
from tessera.transforms.core.compile_report import CompileReport
from tessera.transforms.core.facts import Facts

_LOCATION = re.compile(r' loc\((?:fused\[)?"([^"]*)":(\d+):(\d+)[^)]*\)')
_NOWHERE = re.compile(r" loc\(unknown\)")
_ABOVE, _BELOW = ("graph", "schedule", "tile"), ("machine", "llvm", "asm")


@click.command()
@click.argument("target", metavar="FILE.py:NAME")
@click.option("-s", "--size", "sizes", multiple=True, metavar="NAME=N", help="A size symbol, by default 64.")
@click.option("-c", "--call", "call", default=None, help='Arguments as Python: "q, KVCache(k, v), causal=True".')
@click.option("--level", type=click.Choice([*_ABOVE, *_BELOW]), default=None, help="Show one level only.")
@click.option("--target", "machine", default=None, metavar="NAME", help="Compile for sm_90a, avx512 and the like.")
def inspect(target: str, sizes: tuple[str, ...], call: str | None, level: str | None, machine: str | None) -> None:
    """Traces a kernel or a jitted function for made-up arrays of its annotations (or for the arguments of --call).

    Prints its levels down to tiles, and with --target the way it is compiled for that machine, with what was refused
    and why. The levels below tiles are the target's own (`machine`), LLVM's text (`llvm`) and assembly (`asm`).
    """
    path, _, name = target.rpartition(":")
    if not path or not Path(path).is_file():
        raise ResourceError(f"cannot read {path or target}", hint="write tessera inspect file.py:kernel")
    sys.path.insert(0, str(Path(path).resolve().parent))
    names = runpy.run_path(path)
    first, *attributes = name.split(".")
    found = names.get(first)
    for attribute in attributes:  # a method of an object
        found = getattr(found, attribute, None)
    if not isinstance(found, Kernel | Jitted | Method):
        known = [key for key, value in names.items() if isinstance(value, Kernel | Jitted)]
        raise CompileError(f"{path} has no kernel {name}", hint=f"it has {', '.join(known) or 'none'}")
    is_kernel = isinstance(found, Kernel)
    chosen = _settings(machine or HOST) if machine is not None or level in _BELOW or not is_kernel else None
    lowered = _lowered(found, _sizes(sizes), call, names)
    if isinstance(found, Kernel):
        _show_kernel(found, lowered, level, chosen)
    else:
        _show_function(lowered.program, level, chosen)


def _show_kernel(kernel: Kernel, instance: Instance, level: str | None, chosen: Settings | None) -> None:
    compiled = lower_through(instance, instance.schedule)
    _show_levels({**compiled.levels, "tile": text.write(compiled.module, locations=True)}, level)
    reports = [] if chosen is None else _show_below([source_of(instance)], level, chosen)
    click.echo("guards: " + (", ".join(map(str, instance.guards)) or "none"))
    click.echo(f"schedule: {instance.schedule}{kernel.standing(instance)}")
    _show_reports(reports)


def _show_function(program: Program, level: str | None, chosen: Settings | None) -> None:
    if chosen is not None:
        program = compile_graph(program.codes.graph_module, chosen)
    levels = program.levels
    written = {"graph": levels.graph_ir.text, "schedule": levels.schedule_ir.text, "tile": program.codes.tile_text}
    _show_levels(written, level)
    sources = [source_in(program.codes.tile_module, one) for one in program.host.kernels]
    reports = [] if chosen is None else _show_below(sources, level, chosen)
    _show_reports([(program.name, program.report), *reports])


def _show_levels(written: Mapping[str, str], level: str | None) -> None:
    for title, content in written.items():
        if level in (None, title):
            click.echo(f"== {title} IR")
            click.echo(beside_source(content) if title == "tile" else content)


def _show_below(sources: Sequence[Source], level: str | None, chosen: Settings) -> list[tuple[str, CompileReport]]:
    """Compiles kernels for a target, shows the level below tiles that was asked for, and says how each was compiled."""
    target, found = chosen.compiler, list[tuple[str, CompileReport]]()
    for source in sources:
        options = chosen.options(warps=source.warps, stages=source.stages, follows=source.follows)
        made = target.lower(source, options, Facts(), dict.fromkeys(range(source.inputs), True), None)
        found.append((source.name, made.report))
        if level not in _BELOW:
            continue
        click.echo(f"== {level} of @{source.name} for {chosen.level}")
        if level == "machine":
            own = None if made.module is None else targets_text.write(made.module, locations=True)
            click.echo(f"{target.name} has no level of its own" if own is None else beside_source(own))
        else:
            click.echo(made.text if level == "llvm" else made.assembly())
    return found


def _show_reports(reports: Sequence[tuple[str, CompileReport]]) -> None:
    for name, report in reports:
        for line in report.lines():
            click.echo(f"@{name}: {line}")


def _settings(machine: str) -> Settings:
    target, level = target_and_level(machine)
    checks, deterministic = frozenset[str](), knobs.deterministic.value
    return Settings(target.name, level, knobs.optimization.value, checks, deterministic, demanded=True)


def _sizes(given: tuple[str, ...]) -> dict[str, int]:
    try:
        return {name: int(value) for name, _, value in (entry.partition("=") for entry in given)}
    except ValueError as error:
        raise CompileError(f"cannot read the sizes {given}: {error}", hint="write -s D_h=64") from None


def _lowered(found: Any, sizes: Mapping[str, int], call: str | None, names: dict[str, Any]) -> Any:
    """The instance of a kernel, or a jitted function for its arguments at every level."""
    if call is not None:
        return eval(f"__kernel__.lower({call})", {**names, "ts": ts, "__kernel__": found})
    return found.lower(*example_arguments(found, sizes, 'give the arguments: --call "x, y, flag=True"'))


def beside_source(written: str) -> str:
    """IR text with locations, each replaced by the source line it names, once per line."""
    shown: list[str] = []
    last = None
    for line in written.splitlines():
        found = _LOCATION.search(line)
        bare = _NOWHERE.sub("", _LOCATION.sub("", line))
        location = (found[1], int(found[2])) if found is not None else None
        source = linecache.getline(*location).strip() if location is not None and location != last else ""
        shown.append(f"{bare:<100}  // {location[1]}: {source}" if source and location is not None else bare)
        last = location or last
    return "\n".join(shown)
