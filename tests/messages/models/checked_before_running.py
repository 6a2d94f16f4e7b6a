import numpy as np
import tessera as ts
from tessera import Tensor, bf16, f32, jit

@jit
def mlp(x, w1, w2):
    return ts.relu(x @ w1) @ w2

mlp.check(Tensor["B", 784, f32], Tensor[784, 256, f32], Tensor[128, 10, f32])
