import numpy as np
from tessera.dtypes.types import *
from tessera.errors import caller_span
from tessera.shapes import *
from tessera.shapes import rules

def f(x: KTile["S", bf16 @ accum(f32)]): ...

Signature.of(f).bind({"x": np.zeros(3, np.float32)})
