import tessera as ts

with ts.track_shapes():
    ts.zeros(8).as_strided((3, 4), (4, 1))
