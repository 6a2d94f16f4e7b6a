import numpy as np
import tessera as ts
from tessera import Tensor, bf16, f32, jit

@jit
def halve(x):
    return ts.while_loop(lambda v: ts.any(v > 1.0), lambda v: ts.astype(v * 0.5, bf16), x)

halve(ts.ones((4,)))
