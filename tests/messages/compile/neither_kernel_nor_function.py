# neither kernel nor function
from tessera.compile import to_graph_ir

to_graph_ir(len, ())
