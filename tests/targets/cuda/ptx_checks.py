"""What tests ask of PTX: that it assembles clean, takes the registers that were foreseen, and has certain instructions.

    assembly = check_clean(ptx, "sm_90a")
    check_registers(assembly.kernels["gemm"], estimate)
    assert count(ptx, "wgmma.mma_async") == 4

None of them skips where there is no ptxas: `assemble` raises, and the test fails.
"""

from __future__ import annotations

import re
from collections import Counter

from tessera.targets.cuda.ptx.assembler import Assembly, Usage, assemble, disassembly

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_STRING = re.compile(r'"[^"\n]*"')
# What may stand before an instruction and ends without a semicolon.
_AHEAD = re.compile(
    r"\s+|[{}]|[\w$%]+:(?!:)"
    r"|\.(?:version|target|address_size|loc|file|section|b8|b16|b32|b64)\b[^\n]*"
    r"|(?:\.(?:visible|weak|extern)\s+)?\.(?:entry|func)\b[^{]*\{"
)
_INSTRUCTION = re.compile(r"(?:@!?[\w$%]+\s+)?([a-z]\w*(?:(?:\.|::)\w+)*)")
_MACHINE_INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)")


def check_clean(ptx: str, arch: str, *, stack: int = 0) -> Assembly:
    """Assembles; no kernel has more of a stack than is foreseen, and no matrix instruction waits where nobody asked."""
    assembly = assemble(ptx, arch)
    assert assembly.kernels, "ptxas found no kernel"
    found = [str(remark) for remark in assembly.warnings if remark.slows]
    for name, usage in assembly.kernels.items():
        if usage.stack > stack or (not stack and (usage.spill_stores or usage.spill_loads)):
            found.append(
                f"{name}: {usage.spill_stores} bytes of spill stores, {usage.spill_loads} of spill loads, "
                f"{usage.stack} of stack with {usage.registers} registers"
            )
    assert not found, "\n".join(found)
    return assembly


def check_registers(usage: Usage, estimate: int, tolerance: float = 0.15) -> None:
    """The estimate of registers was right, give or take 15 %."""
    off = usage.registers / estimate - 1
    assert abs(off) <= tolerance, f"{usage.registers} registers, {estimate} were foreseen: off by {100 * off:+.0f} %"


def instructions(ptx: str) -> Counter[str]:
    """How often each instruction stands in the text, by its whole name; predicated ones too."""
    found: Counter[str] = Counter()
    for statement in _STRING.sub('""', _COMMENT.sub(" ", ptx)).split(";"):
        rest = statement
        while (ahead := _AHEAD.match(rest)) is not None:
            rest = rest[ahead.end() :]
        if (instruction := _INSTRUCTION.match(rest)) is not None:
            found[instruction[1]] += 1
    return found


def count(ptx: str, name: str) -> int:
    """Instructions of a name or one that goes on after it: `mma.sync` counts `mma.sync.aligned…`, not `mma.synch`."""
    return sum(
        times for each, times in instructions(ptx).items() if each == name or each.startswith((f"{name}.", f"{name}::"))
    )


def machine_instructions(cubin: bytes) -> Counter[str] | None:
    """The same of machine code, such as `HGMMA.64x256x16.F32.BF16`; None where nvdisasm is not installed."""
    text = disassembly(cubin)
    return None if text is None else machine_instructions_of(text)


def machine_instructions_of(text: str) -> Counter[str]:
    """From nvdisasm's output."""
    return Counter(_MACHINE_INSTRUCTION.findall(text))
