import numpy as np
import tessera as ts
from tessera import Tensor, bf16, f32, jit

@jit
def project(x: Tensor["N", 64], w: Tensor[64, "M"]):
    return x @ w

@jit
def model(x, w):
    return project(ts.reshape(x, (-1, 32)), w)

model(ts.zeros((4, 64)), ts.zeros((64, 8)))
