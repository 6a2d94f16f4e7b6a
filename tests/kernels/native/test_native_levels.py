"""The tests of the tile language once more at each level of the processor: all their kernels, as machine code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from odd_arrays import MACHINES

KERNELS = Path(__file__).parents[1]
FILES = [
    "language/test_attention_kernel.py",
    "language/test_control_flow.py",
    "language/test_intrinsics.py",
    "language/test_library.py",
    "native/test_native.py",
    "language/test_outputs.py",
    "language/test_schedules.py",
    "language/test_tile_parameters.py",
]


@pytest.mark.acceptance
@pytest.mark.parametrize("level", MACHINES)
def test_the_language_means_the_same(level: str) -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-m",
        "not acceptance and not gpu and not peers",
    ]
    environment = {**os.environ, "TESSERA_CPU_LEVEL": level}
    environment.pop("PYTEST_ADDOPTS", None)
    done = subprocess.run([*command, *FILES], cwd=KERNELS, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
