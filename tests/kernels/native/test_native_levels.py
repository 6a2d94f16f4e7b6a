"""The tests of the tile language once more at each level of the processor: all their kernels, as machine code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from odd_arrays import MACHINES

HERE = Path(__file__).parent
FILES = [
    "test_attention_kernel.py",
    "test_control_flow.py",
    "test_intrinsics.py",
    "test_library.py",
    "test_native.py",
    "test_outputs.py",
    "test_schedules.py",
    "test_tile_parameters.py",
]


@pytest.mark.acceptance
@pytest.mark.parametrize("level", MACHINES)
def test_the_language_means_the_same(level: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not acceptance and not peers"]
    environment = {**os.environ, "TESSERA_CPU_LEVEL": level}
    environment.pop("PYTEST_ADDOPTS", None)
    done = subprocess.run([*command, *FILES], cwd=HERE, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
