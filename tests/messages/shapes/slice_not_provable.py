import numpy as np
from tessera.dtypes.types import *
from tessera.errors import caller_span
from tessera.shapes import *
from tessera.shapes import rules

rules.slice_shape(shape_of(["B", "S"]), [None, 1], [None, None], [None, None])
