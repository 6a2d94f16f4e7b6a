"""`tessera opt`: runs named passes over IR text, and emits what comes of it."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError

from tessera.compiler.artifact import Source
from tessera.compiler.options import CompileOptions
from tessera.compiler.target import target_and_level
from tessera.device_names import HOST
from tessera.errors import CompileError, ResourceError
from tessera.ir.graph import dialect as graph
from tessera.ir.tile import dialect as tile
from tessera.targets import text
from tessera.targets.passes import ALL_PASSES
from tessera.transforms.core import legality
from tessera.transforms.core.context import CompileContext
from tessera.transforms.core.facts import Facts


@click.command()
@click.argument("file", default="-")
@click.option("-p", "--passes", default="", help="Passes to run, in order: canonicalize,cse,apply-facts{function=f}.")
@click.option("-f", "--fact", "facts", multiple=True, help='A fact for apply-facts, such as "arg0.size[1] = 128".')
@click.option(
    "--level", type=click.Choice(list(legality.LEVELS)), help="Check at the end that this level's spec holds."
)
@click.option("--emit", type=click.Choice(["llvm", "asm"]), help="Print LLVM's text, or assembly, instead of the IR.")
@click.option("--target", "machine", default=HOST, metavar="NAME", help="What --emit is for: sm_90a, avx512.")
@click.option("--locations", is_flag=True, help="Print the source location of every op.")
@click.option("--timing", is_flag=True, help="Print what each pass cost, to standard error.")
@click.option("--hash", "print_hash", is_flag=True, help="Print the structural hash instead of the text.")
@click.option("-o", "--output", default="-", help="Where to write; by default standard output.")
def opt(
    file: str,
    passes: str,
    facts: tuple[str, ...],
    level: str | None,
    emit: str | None,
    machine: str,
    locations: bool,
    timing: bool,
    print_hash: bool,
    output: str,
) -> None:
    """Reads IR from FILE (or standard input), verifies it, runs passes, verifies again, prints the result.

    With facts, the guards that the result needs follow as comments. With --emit the functions go on to LLVM's text or
    to assembly: those at the level of the target as they are, tile functions by way of the target's own passes. A FILE
    whose name ends in .ll has LLVM's text already, as dumps of stages do.
    """
    if file.endswith(".ll"):
        _write(_assembled(file, machine, is_plain=emit == "asm" and not passes), output)
        return
    pipeline = _pipeline(passes)
    context = CompileContext.with_facts(Facts.parse(*facts), text.DIALECTS)
    module = text.read(_content(file), file, context=context)
    for step in pipeline:
        start = time.perf_counter()
        step.apply(context, module)
        text.verify(module)
        if timing:
            click.echo(f"{step.name}: {1e3 * (time.perf_counter() - start):.2f} ms", err=True)
    if level is not None:
        legality.check(module, level)
    if emit is not None:
        result = _emitted(module, machine, to_assembly=emit == "asm")
    else:
        result = text.structural_hash(module) + "\n" if print_hash else text.write(module, locations=locations)
        result += "".join(f"// guard: {atom}\n" for atom in context.recorder.guards)
    _write(result, output)


def _write(result: str, output: str) -> None:
    if output == "-":
        sys.stdout.write(result)
    else:
        try:
            Path(output).write_text(result, encoding="utf-8")
        except OSError as error:
            raise ResourceError(f"cannot write {output}: {error}", hint="give a path that can be written") from error


def _assembled(file: str, machine: str, *, is_plain: bool) -> str:
    if not is_plain:
        raise CompileError(f"{file} is LLVM's text, on which no pass runs", hint="write --emit asm, without -p")
    target, level = target_and_level(machine)
    return target.assembly(_content(file), CompileOptions(target.name, level))


def _emitted(module: ModuleOp, machine: str, *, to_assembly: bool) -> str:
    """What the emitter of a target writes of all kernels of a module, or its assembly."""
    target, level = target_and_level(machine)
    written: list[str] = []
    for op in module.body.block.ops:
        name = op.properties.get("sym_name")
        if isinstance(op, graph.FuncOp) or not isinstance(name, StringAttr):
            continue
        options = CompileOptions(target.name, level)
        alone = ModuleOp([op.clone()])
        if isinstance(op, tile.FuncOp):
            count = len(op.arguments)
            source = Source(alone, name.data, count - op.outputs.value.data, op.outputs.value.data)
            made = target.lower(source, options, Facts(), dict.fromkeys(range(count), True), None)
            written.append(made.assembly() if to_assembly else made.text)
        else:
            text_ = target.emit(alone, name.data, options)
            written.append(target.assembly(text_, options) if to_assembly else text_)
    if not written:
        raise CompileError(
            "the module has no kernel to emit", hint="bring it down to tile functions first: -p graph-to-schedule,…"
        )
    return "\n".join(written)


def _pipeline(passes: str) -> list[ModulePass]:
    try:
        specs = list(parse_pipeline(passes))
        unknown = [spec.name for spec in specs if spec.name not in ALL_PASSES]
        if unknown:
            raise CompileError(f"unknown pass {unknown[0]}", hint=f"passes are {', '.join(ALL_PASSES)}")
        return [ALL_PASSES[spec.name].from_spec(spec) for spec in specs]
    except (ArgSpecParseError, ValueError) as error:
        raise CompileError(
            f"cannot read the passes {passes!r}: {error}", hint="write name,name{option=value}"
        ) from error


def _content(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ResourceError(
            f"cannot read {file}: {error}", hint="give the path of an IR text file, or - for stdin"
        ) from error
