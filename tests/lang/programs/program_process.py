"""Another process: finds a program on the disk by its key, runs it, and says what was imported for that."""

from __future__ import annotations

import json
import sys

import tessera as ts
from tessera.kernels.native import settings
from tessera.lang.programs import find


def main() -> None:
    chosen = settings()
    assert chosen is not None
    program = find(sys.argv[1], chosen)
    if program is None:
        sys.stdout.write(json.dumps({"found": False}))
        return
    values = [ts.full((4, 6), 2.0), ts.full((4, 6), 1.0), ts.full((6,), 0.5)]
    results = program.bind(values)(*values)
    heavy = sorted({name.split(".")[0] for name in sys.modules} & {"xdsl", "llvmlite"})
    said = {"found": True, "heavy": heavy, "values": [one.tolist() for one in results], "made": program.codes.compiled}
    sys.stdout.write(json.dumps(said))


if __name__ == "__main__":
    main()
