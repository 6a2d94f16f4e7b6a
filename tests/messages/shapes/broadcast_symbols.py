import numpy as np
from tessera.dtypes.types import *
from tessera.errors import caller_span
from tessera.shapes import *
from tessera.shapes import rules

rules.broadcast(shape_of(["B", "S", 64]), shape_of(["B", "T", 64]), where="add")
