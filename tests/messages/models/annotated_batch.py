import numpy as np
import tessera as ts
from tessera import Tensor, bf16, f32, jit

def loss(x: Tensor["B", "D", f32], y: Tensor["B", f32]):
    return ts.mean((ts.sum(x, axis=-1) - y) ** 2.0)

jit(loss)(ts.zeros((8, 4)), ts.zeros((16,)))
