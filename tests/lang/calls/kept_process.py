"""A process of its own: calls jitted functions, and says what that took."""

from __future__ import annotations

import json
import sys
from typing import Any

import tessera as ts
from tessera import jit

RATE = float(sys.argv[1])


def helper(x: Any) -> Any:
    return ts.tanh(x) * RATE


@jit
def inner(x: Any) -> Any:
    return x + 1.0


@jit
def model(x: Any, tree: dict[str, Any], *, mode: str = "sum") -> Any:
    y = inner(helper(x @ tree["w"])) + tree["b"]
    return {"y": y, "size": x.shape[0], "mode": mode}


@jit
def captures(x: Any) -> Any:
    return x * CAPTURED


CAPTURED = ts.full((4,), 2.0)


def main() -> None:
    found: dict[str, Any] = {}
    tree = {"w": ts.full((8, 4), 0.125), "b": ts.full((4,), 2.0)}
    for length in (3, 5, 7):
        result = model(ts.ones((length, 8)), tree)
        found[str(length)] = [result["y"].tolist(), result["size"], result["mode"]]
    found["eager"] = ts.exp(ts.zeros((3,))).tolist()
    found["heavy"] = sorted({name.split(".")[0] for name in sys.modules} & {"xdsl", "llvmlite"})
    found["found"] = model.explain().found
    found["programs"] = model.explain().compilations
    if len(sys.argv) > 2:
        found["captured"] = captures(ts.ones((4,))).tolist()
        found["found captured"] = captures.explain().found
        found["text"] = "graph.matmul" in model.lower(ts.ones((3, 8)), tree).graph_ir.text
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
