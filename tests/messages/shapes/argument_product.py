import numpy as np
from tessera.dtypes.types import *
from tessera.errors import caller_span
from tessera.shapes import *
from tessera.shapes import rules

def heads(x: KTile["B*H", "S"], y: KTile["B", "S"]): ...

Signature.of(heads).bind({"x": np.zeros((30, 7)), "y": np.zeros((4, 7))})
