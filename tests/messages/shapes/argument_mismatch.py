import numpy as np
from tessera.dtypes.types import *
from tessera.errors import caller_span
from tessera.shapes import *
from tessera.shapes import rules

def attend(q: KTile["B", "S", 64, f32], v: KTile["B", "S", 64, f32]): ...

call = Signature.of(attend)
call.bind({"q": np.zeros((2, 128, 64), "f4"), "v": np.zeros((2, 64, 64), "f4")})
