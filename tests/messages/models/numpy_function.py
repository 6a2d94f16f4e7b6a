import numpy as np
import tessera as ts
from tessera import Tensor, bf16, f32, jit

@jit
def wave(x):
    return np.sinc(x)

wave(ts.ones((4,)))
