"""A process of its own: compiles a program and keeps it, or finds it by its key; it runs it and says what that took."""

from __future__ import annotations

import json
import sys

import tessera as ts
from tessera.programs import Program, find, keep
from tessera.tile.calls.settings import settings


def found_or_made(key: str, action: str) -> Program | None:
    chosen = settings()
    assert chosen is not None
    if action == "find":
        return find(key, chosen)
    from program_cases import CHAIN, program_of

    program = program_of(CHAIN)
    keep(key, program)
    return program


def main(key: str, action: str) -> None:
    program = found_or_made(key, action)
    if program is None:
        sys.stdout.write(json.dumps({"found": False}))
        return
    values = [ts.full((4, 6), 2.0), ts.full((4, 6), 1.0), ts.full((6,), 0.5)]
    results = program.bind(values)(*values)
    heavy = sorted({name.split(".")[0] for name in sys.modules} & {"xdsl", "llvmlite"})
    said = {"found": True, "heavy": heavy, "values": [one.tolist() for one in results], "made": program.codes.compiled}
    sys.stdout.write(json.dumps(said))


if __name__ == "__main__":
    main(*sys.argv[1:])
