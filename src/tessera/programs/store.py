"""Programs on the disk: found and run without the IR and without LLVM.

An entry holds the host program and the texts of its levels; machine code of kernels lies beside it, by what the kernels
are (code.py). If that is gone, it is compiled again, from the text.
"""

from __future__ import annotations

import json
import zlib
from typing import Any

from tessera.programs import host
from tessera.programs.code import Codes
from tessera.programs.levels import Levels, LevelText
from tessera.programs.program import Program
from tessera.runtime.cache import store as cache
from tessera.runtime.cache.build import build
from tessera.runtime.device.device import Device
from tessera.tile.calls.settings import Settings, target_of
from tessera.transforms.core.compile_report import CompileReport


def find(key: str, chosen: Settings, device: Device | None = None) -> Program | None:
    """The program that was kept under a key, for the same target and by the same compiler, to run on a device.

    The key is chosen by the caller: all that a program was made of, and what it assumes of its arguments.
    """
    entry = _entry_key(key, chosen)
    data = None if entry is None else cache.shared().get(entry)
    if data is None:
        return None
    try:
        head, body = cache.unpacked(data)
        texts = json.loads(zlib.decompress(body))
        program = _program(host.Host.decoded(head), texts, chosen)
    except cache.UNREADABLE:
        return None
    program.device = device
    program.report.tell(program.name)
    return program


def keep(key: str, program: Program) -> None:
    """Keeps a program, if it can be: one that the interpreter runs is none."""
    if program.settings is None or (entry := _entry_key(key, program.settings)) is None:
        return
    levels = program.levels
    texts = {
        "graph": levels.graph_ir.text,
        "schedule": levels.schedule_ir.text,
        "tile": levels.tile_ir.text,
        "located": program.codes.tile_text,
        "report": program.report.encoded(),
    }
    body = zlib.compress(json.dumps(texts).encode())
    cache.shared().put(entry, cache.packed(program.host.encoded(), body))


def _entry_key(key: str, chosen: Settings) -> str | None:
    compiler = build()
    return None if compiler is None else cache.key_of("program", compiler, target_of(chosen), key)


def _program(found: host.Host, texts: dict[str, Any], chosen: Settings) -> Program:
    codes = Codes(found.name, found.kernels, texts["graph"], texts["located"])

    def below() -> tuple[str, str]:
        from tessera.programs.machine_code import machine_texts

        return machine_texts(codes.tile_module, codes.kernels, chosen)

    levels = Levels(*(LevelText(texts[name]) for name in ("graph", "schedule", "tile")), below=below)
    return Program(found, chosen, levels, codes, report=CompileReport.decoded(texts["report"]))
