"""PTX to machine code by NVIDIA's ptxas, where there is one: what a kernel uses, and what ptxas thinks of it.

Users need no ptxas: the driver assembles PTX by itself. Tests do, for only ptxas tells what became of a kernel.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from tessera.errors import CompileError, ResourceError
from tessera.targets.cuda.ptx.tools import find_ptxas, find_tool

_REFUSAL = re.compile(r"^ptxas (?:.*, line (\d+); )?(?:error|fatal)\s*: (.*)$", re.MULTILINE)
_REMARK = re.compile(r"^ptxas (?:.*, line (\d+); )?(info|warning)\s*: (?:\(([A-Z]\d+)\) )?(.*)$")
_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_USED = re.compile(r"Used (\d+) registers")
_AMOUNTS = {
    "stack": re.compile(r"(\d+) bytes (?:stack frame|cumulative stack size)"),
    "spill_stores": re.compile(r"(\d+) bytes spill stores"),
    "spill_loads": re.compile(r"(\d+) bytes spill loads"),
    "barriers": re.compile(r"used (\d+) barriers"),
    "shared": re.compile(r"(\d+) bytes smem"),
}
_CONSTANTS = re.compile(r"(\d+) bytes cmem\[\d+\]")
_AROUND = re.compile(r"around line (\d+)")
_CONTEXT_LINES = 2


@dataclass(frozen=True, slots=True)
class Usage:
    """The resources of one kernel: registers and stack of a thread, memory and barriers of a block; sizes in bytes."""

    registers: int = 0
    spill_stores: int = 0
    spill_loads: int = 0
    stack: int = 0
    shared: int = 0
    """Static only: what a launch adds is not in the code."""
    barriers: int = 0
    constants: int = 0


@dataclass(frozen=True, slots=True)
class Remark:
    """Something that ptxas noticed. `code` is its number for it, such as C7510; "" where it has none."""

    code: str
    text: str
    line: int | None = None
    """Of the PTX, where it is told."""

    @property
    def slows(self) -> bool:
        """Whether it costs speed: C75xx and C76xx are about matrix instructions that wait where no wait was written."""
        return self.code.startswith(("C75", "C76"))

    def __str__(self) -> str:
        where = "" if self.line is None else f" (line {self.line})"
        return f"{self.code}{': ' if self.code else ''}{self.text}{where}"


@dataclass(frozen=True, slots=True)
class Assembly:
    """Machine code of one architecture, and what ptxas said of it."""

    cubin: bytes
    kernels: Mapping[str, Usage]
    warnings: tuple[Remark, ...]


def assemble(ptx: str, arch: str) -> Assembly:
    """The machine code of PTX text for an architecture such as "sm_90a"."""
    ptxas = find_ptxas()
    if ptxas is None:
        raise ResourceError(
            "there is no ptxas on the path, in CUDA_HOME or in a wheel",
            hint="install the wheel nvidia-cuda-nvcc, which is in the extra `test`, or put a CUDA toolkit on the path",
        )
    with TemporaryDirectory(prefix="tessera-ptxas-") as folder:
        target = Path(folder) / "cubin"
        done = subprocess.run(
            [str(ptxas), f"-arch={arch}", "-v", "-", "-o", str(target)],
            input=ptx.encode(),
            capture_output=True,
            check=False,
        )
        said = (done.stdout + done.stderr).decode(errors="replace")
        if done.returncode:
            raise _refusal(said, ptx, arch, done.returncode)
        return Assembly(target.read_bytes(), usage_of(said), tuple(remarks_of(said)))


def disassembly(cubin: bytes) -> str | None:
    """The machine instructions, by nvdisasm; None where that is not installed."""
    tool = find_tool("nvdisasm")
    if tool is None:
        return None
    with TemporaryDirectory(prefix="tessera-nvdisasm-") as folder:
        source = Path(folder) / "cubin"
        source.write_bytes(cubin)
        done = subprocess.run([str(tool), "-c", str(source)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise CompileError(f"nvdisasm cannot read the machine code: {done.stderr.strip()}")
    return done.stdout


def usage_of(said: str) -> dict[str, Usage]:
    """The resources of each kernel, from the output of `ptxas -v`. Functions that a kernel calls count with it."""
    found: dict[str, Usage] = {}
    entry = ""
    for line in said.splitlines():
        if (named := _ENTRY.search(line)) is not None:
            entry = named[1]
            found[entry] = Usage()
        elif entry:
            found[entry] = _with(found[entry], line)
    return found


def _with(usage: Usage, line: str) -> Usage:
    changes: dict[str, int] = {}
    if (used := _USED.search(line)) is not None:
        changes["registers"] = max(usage.registers, int(used[1]))
        changes["constants"] = max(usage.constants, sum(map(int, _CONSTANTS.findall(line))))
    for name, pattern in _AMOUNTS.items():
        if (amount := pattern.search(line)) is not None:
            changes[name] = max(getattr(usage, name), int(amount[1]))
    return replace(usage, **changes)


def remarks_of(said: str) -> Iterator[Remark]:
    """The warnings of ptxas. Those about matrix instructions are called `info`, and have a number."""
    for line in said.splitlines():
        found = _REMARK.match(line)
        if found is None or (found[2] == "info" and not found[3]):
            continue
        line_number = found[1] or next(iter(_AROUND.findall(line)), None)
        yield Remark(found[3] or "", found[4].strip(), None if line_number is None else int(line_number))


def _refusal(said: str, ptx: str, arch: str, status: int) -> CompileError:
    """ptxas's first words, with the lines of the PTX that they are about."""
    found = _REFUSAL.search(said)
    if found is None:
        words = said.strip().splitlines()
        return CompileError(f"ptxas ended with {status} for {arch}: {words[-1] if words else 'it said nothing'}")
    if found[1] is None:
        return CompileError(f"ptxas refuses the code for {arch}: {found[2]}")
    written, number = ptx.split("\n"), int(found[1])
    first = max(1, number - _CONTEXT_LINES)
    shown = written[first - 1 : number + _CONTEXT_LINES]
    story = [f"{'>' if first + index == number else ' '} {first + index:>4} {text}" for index, text in enumerate(shown)]
    return CompileError(f"ptxas refuses line {number} of the code for {arch}: {found[2]}", story=story)
