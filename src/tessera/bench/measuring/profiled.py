"""A process that Nsight Compute starts and looks at: one implementation of a benchmark, warm, called once.

The process runs `run`, with one argument: '{"benchmark": "softmax", "size": {…}, "precision": "bf16", …}'
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from tessera import knobs, subprocesses
from tessera.bench import registry
from tessera.bench.instruments import ncu
from tessera.bench.measuring.definition import OperatorDefinition
from tessera.bench.measuring.frameworks import adapted
from tessera.bench.measuring.precision import Precision
from tessera.bench.measuring.precision import precision as read_precision
from tessera.bench.measuring.sampling import Inputs
from tessera.bench.results.definitions import ProblemSize

_LABEL = "case"
_WARM_CALLS = 2


def profile(
    benchmark: OperatorDefinition, size: ProblemSize, precision: Precision, implementation: str
) -> dict[str, Any]:
    """The figures of one call, and the reasons for those that are missing."""
    wanted = {
        "files": [str(path) for path in registry.loaded],
        "benchmark": benchmark.name,
        "size": dict(size),
        "precision": precision.name,
        "implementation": implementation.partition(" ")[0],  # the rest is the level
        "optimization": knobs.optimization.value,
    }
    code = f"import json; from {__name__} import run; run(json.loads(sys.argv[1]))"
    command = subprocesses.python(code, json.dumps(wanted), runs_users_code=True)
    return ncu.profile(command, [_LABEL], subprocesses.environment())[_LABEL].all()


def run(wanted: dict[str, Any]) -> None:
    """Builds and calls it."""
    for path in wanted["files"]:
        registry.load(Path(path))
    benchmark: Any = registry.get(wanted["benchmark"])
    size, chosen = wanted["size"], read_precision(wanted["precision"])
    one = benchmark.implementations[wanted["implementation"]]
    inputs = Inputs(benchmark, size, chosen, np.random.default_rng(0))
    arguments = adapted(one.framework, inputs.make(inputs.draw(1)[0]))
    with knobs.optimization.using(wanted["optimization"]):
        call = one.built(benchmark, size, chosen).call
        for _ in range(_WARM_CALLS):
            one.framework.finish(call(*arguments))
        with ncu.region(_LABEL):
            one.framework.finish(call(*arguments))
