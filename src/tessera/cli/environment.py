"""`tessera env`: what this machine and this installation are."""

from __future__ import annotations

import os
import platform
from importlib import metadata

import click
from rich.console import Console
from rich.table import Table

import tessera
from tessera import knobs
from tessera.targets.text import VERSIONS

_LIBRARIES = ("numpy", "ml_dtypes", "optree", "xdsl", "llvmlite", "rich", "click")


@click.command()
def env() -> None:
    """Shows versions, the machine, and every setting with where its value came from."""
    console = Console()
    facts = Table(show_header=False, box=None)
    facts.add_row("tessera", tessera.__version__)
    facts.add_row("python", f"{platform.python_version()} ({platform.python_implementation()})")
    facts.add_row("machine", f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}")
    for name in _LIBRARIES:
        facts.add_row(name, metadata.version(name))
    facts.add_row("dialects", ", ".join(f"{name} {version}" for name, version in VERSIONS.items()))
    console.print(facts)
    settings = Table("setting", "variable", "value", "from", "meaning")
    for row in knobs.describe():
        settings.add_row(row.name, row.variable, str(row.value), row.source, row.meaning)
    console.print(settings)
    for variable in knobs.unknown_variables():
        console.print(f"[yellow]{variable} is set but is not a setting of Tessera")
