# unknown option
import tessera as ts
from tessera.compile import to_graph_ir


@ts.jit
def doubled(x):
    return x + x


to_graph_ir(doubled, (ts.ones((4, 4)),), options={"levels": "sm_80"})
