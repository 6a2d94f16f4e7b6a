import numpy as np
import tessera as ts
from tessera import Tensor, bf16, f32, jit

activations = []

@jit
def layer(x):
    activations.append(x * 2.0)
    return x

layer(ts.ones((4,)))
jit(lambda x: x + activations[0])(ts.ones((4,)))
