"""`tessera opt`: runs named passes over IR text."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click
from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError

from tessera.errors import CompileError, ResourceError
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
@click.option("--locations", is_flag=True, help="Print the source location of every op.")
@click.option("--timing", is_flag=True, help="Print what each pass cost, to standard error.")
@click.option("--hash", "print_hash", is_flag=True, help="Print the structural hash instead of the text.")
@click.option("-o", "--output", default="-", help="Where to write; by default standard output.")
def opt(
    file: str,
    passes: str,
    facts: tuple[str, ...],
    level: str | None,
    locations: bool,
    timing: bool,
    print_hash: bool,
    output: str,
) -> None:
    """Reads IR from FILE (or standard input), verifies it, runs passes, verifies again, prints the result.

    With facts, the guards that the result needs follow as comments.
    """
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
    result = text.structural_hash(module) + "\n" if print_hash else text.write(module, locations=locations)
    result += "".join(f"// guard: {atom}\n" for atom in context.recorder.guards)
    if output == "-":
        sys.stdout.write(result)
    else:
        try:
            Path(output).write_text(result, encoding="utf-8")
        except OSError as error:
            raise ResourceError(f"cannot write {output}: {error}", hint="give a path that can be written") from error


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
