import numpy as np
from tessera.dtypes.types import *
from tessera.errors import caller_span
from tessera.shapes import *
from tessera.shapes import rules

KTile["B", "2*(S + 1", bf16]
