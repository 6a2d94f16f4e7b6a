"""The `tessera` command and how it reports errors."""

from __future__ import annotations

import sys
from importlib import import_module

import click

from tessera import __version__
from tessera.errors import TesseraError

# Each command lives in a module of its own, loaded when it is asked for: `tessera --help` stays quick.
_COMMANDS = {
    "bench": "tessera.cli.bench:bench",
    "cache": "tessera.cli.cache:cache",
    "demo": "tessera.cli.demo:demo",
    "env": "tessera.cli.environment:env",
    "inspect": "tessera.cli.inspect:inspect",
    "opt": "tessera.cli.opt:opt",
    "validate": "tessera.cli.validate:validate",
}


class _Lazy(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, _, name = _COMMANDS[cmd_name].partition(":")
        return getattr(import_module(module), name)


@click.group(cls=_Lazy)
@click.version_option(__version__, prog_name="tessera")
def cli() -> None:
    """Tessera: tiles, not threads."""


def main() -> None:
    """Runs the command; an error of ours is printed as it was written, without a traceback."""
    try:
        cli()
    except TesseraError as error:
        # A span guessed from the stack would show Tessera's own code.
        error.span = error.span if error.is_located else None
        click.echo(f"{type(error).__name__}: {error}", err=True)
        sys.exit(1)
