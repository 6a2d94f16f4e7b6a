import numpy as np
from tessera.dtypes.types import *
from tessera.errors import caller_span
from tessera.shapes import *
from tessera.shapes import rules

rules.reshape(shape_of(["B", "S"]), (*shape_of(["B"]), 64, -1))
