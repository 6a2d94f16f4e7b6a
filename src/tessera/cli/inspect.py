"""`tessera inspect file.py:kernel`: a kernel at every level, with the source lines beside the IR."""

from __future__ import annotations

import linecache
import re
import runpy
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

import tessera as ts
from tessera.compile.example_arguments import example_arguments
from tessera.errors import CompileError, ResourceError
from tessera.ir import text
from tessera.tile.calls.function import Kernel
from tessera.tile.calls.instance import Instance
from tessera.tile.calls.levels import lower_through

_LOCATION = re.compile(r' loc\((?:fused\[)?"([^"]*)":(\d+):(\d+)[^)]*\)')
_NOWHERE = re.compile(r" loc\(unknown\)")


@click.command()
@click.argument("target", metavar="FILE.py:KERNEL")
@click.option("-s", "--size", "sizes", multiple=True, metavar="NAME=N", help="A size symbol, by default 64.")
@click.option("-c", "--call", "call", default=None, help='Arguments as Python: "q, KVCache(k, v), causal=True".')
@click.option("--level", type=click.Choice(["graph", "schedule", "tile"]), default=None, help="Show one level only.")
def inspect(target: str, sizes: tuple[str, ...], call: str | None, level: str | None) -> None:
    """Traces a kernel for made-up arrays of its annotations (or for the arguments of --call) and prints its levels."""
    path, _, name = target.rpartition(":")
    if not path or not Path(path).is_file():
        raise ResourceError(f"cannot read {path or target}", hint="write tessera inspect file.py:kernel")
    sys.path.insert(0, str(Path(path).resolve().parent))
    names = runpy.run_path(path)
    kernel = names.get(name)
    if not isinstance(kernel, Kernel):
        found = [key for key, value in names.items() if isinstance(value, Kernel)]
        raise CompileError(f"{path} has no kernel {name}", hint=f"it has {', '.join(found) or 'none'}")
    instance = _instance(kernel, _sizes(sizes), call, names)
    compiled = lower_through(instance, instance.schedule)
    for title, written in compiled.levels.items():
        if level not in (None, title):
            continue
        click.echo(f"== {title} IR")
        click.echo(beside_source(text.write(compiled.module, locations=True)) if title == "tile" else written)
    click.echo("guards: " + (", ".join(map(str, instance.guards)) or "none"))
    click.echo(f"schedule: {instance.schedule}{kernel.standing(instance)}")


def _sizes(given: tuple[str, ...]) -> dict[str, int]:
    try:
        return {name: int(value) for name, _, value in (entry.partition("=") for entry in given)}
    except ValueError as error:
        raise CompileError(f"cannot read the sizes {given}: {error}", hint="write -s D_h=64") from None


def _instance(kernel: Kernel, sizes: Mapping[str, int], call: str | None, names: dict[str, Any]) -> Instance:
    if call is not None:
        return eval(f"__kernel__.lower({call})", {**names, "ts": ts, "__kernel__": kernel})
    return kernel.lower(*example_arguments(kernel, sizes, 'give the arguments: --call "x, y, flag=True"'))


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
