"""`tessera cache`: what the compile cache holds, and how to empty and check it."""

from __future__ import annotations

import sys
import time

import click

from tessera.runtime.cache.store import shared


@click.group(invoke_without_command=True)
@click.pass_context
def cache(context: click.Context) -> None:
    """Shows where the compile cache is and what it holds."""
    if context.invoked_subcommand is None:
        store = shared()
        entries = store.entries()
        click.echo(f"folder   {store.root}")
        click.echo(f"entries  {len(entries)}")
        click.echo(f"size     {_shown(sum(entry.size for entry in entries))} of {_shown(store.size_cap)}")
        if entries:
            click.echo(f"used     {_when(entries[0].used_ns)} to {_when(entries[-1].used_ns)}")


@cache.command()
def clear() -> None:
    """Removes every entry; programs are compiled again when they are next called."""
    removed = shared().clear()
    click.echo(f"{removed} {_entries(removed)} removed from {shared().root}")


@cache.command()
def verify() -> None:
    """Checks every entry and removes those that are damaged; the exit status is 1 if there were any."""
    damaged = shared().verify()
    for name in damaged:
        click.echo(f"damaged  {name}")
    whole = len(shared().entries())
    click.echo(f"{whole} {_entries(whole)} whole, {len(damaged)} damaged and removed")
    sys.exit(1 if damaged else 0)


def _entries(count: int) -> str:
    return "entry" if count == 1 else "entries"


def _when(nanoseconds: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(nanoseconds / 1e9))


def _shown(size: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.4g} {unit}"
        size /= 1024
    return f"{size:.4g} GiB"
