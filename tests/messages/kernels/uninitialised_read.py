from pathlib import Path

import numpy as np
from tessera.ir import text
from tessera.interpreters.sanitizers.checks import Checks
from tessera.interpreters.levels.tile import run_kernel

program = Path(__file__).with_suffix(".mlir")
run_kernel(text.read(program.read_text(), str(program)), "f", [np.zeros(4, np.float32)], checks=Checks.all())
