"""`tessera env`: what this machine and this installation are."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from importlib import metadata

import click
from rich.console import Console
from rich.table import Table

import tessera
from tessera import knobs, python_versions
from tessera.errors import DeviceError
from tessera.runtime.cuda import driver
from tessera.runtime.cuda.context import Context
from tessera.targets.cuda.ptx.tools import find_ptxas
from tessera.targets.text import VERSIONS

_LIBRARIES = ("numpy", "ml_dtypes", "optree", "xdsl", "llvmlite", "rich", "click")
_CUDA_LIBRARIES = ("cuda-bindings", "nvidia-ml-py", "nvtx")


@click.command()
def env() -> None:
    """Shows versions, the machine and its GPUs, and every setting with where its value came from."""
    console = Console()
    facts = Table(show_header=False, box=None)
    facts.add_row("tessera", tessera.__version__)
    facts.add_row("python", f"{platform.python_version()} ({platform.python_implementation()})")
    for remark in python_versions.remarks():
        facts.add_row("", remark)
    facts.add_row("machine", f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}")
    for name in _LIBRARIES:
        facts.add_row(name, metadata.version(name))
    for name, found in cuda_facts():
        facts.add_row(name, found)
    facts.add_row("dialects", ", ".join(f"{name} {version}" for name, version in VERSIONS.items()))
    console.print(facts)
    settings = Table("setting", "variable", "value", "from", "meaning")
    settings.columns[0].no_wrap = True
    for row in knobs.describe():
        settings.add_row(row.name, row.variable, str(row.value), row.source, row.meaning)
    console.print(settings)
    for variable in knobs.unknown_variables():
        console.print(f"[yellow]{variable} is set but is not a setting of Tessera")


def cuda_facts() -> Iterator[tuple[str, str]]:
    """The state of CUDA: its packages, ptxas, the driver and the GPUs, or the reason why they cannot be used."""
    for name in _CUDA_LIBRARIES:
        try:
            yield name, metadata.version(name)
        except metadata.PackageNotFoundError:
            yield name, "not installed; the extra `cuda` has it"
    yield "ptxas", str(find_ptxas() or "not found; the driver assembles")
    try:
        version = driver.driver_version()
        yield "cuda", f"{version // 1000}.{version % 1000 // 10}, the newest that the driver knows"
        for index in range(driver.device_count()):
            found = Context.of(index).properties
            capability = ".".join(map(str, found.capability))
            memory = f"{found.memory / 2**30:.0f} GiB"
            yield f"cuda:{index}", f"{found.name}, {capability}, {found.multiprocessors} multiprocessors, {memory}"
    except DeviceError as error:
        yield "cuda", f"none: {error.message}"
