import numpy as np
from tessera.dtypes.types import *
from tessera.errors import caller_span
from tessera.shapes import *
from tessera.shapes import rules

sizes = ShapeEnvironment()
sizes.require(DivisibleBy("S", 64), Origin("schedule block=64"))
sizes.unify("S", "T + 1", Origin("argument 'x', axis 0"))
sizes.bind("T", 99, Origin("argument 'y', axis 0"))
