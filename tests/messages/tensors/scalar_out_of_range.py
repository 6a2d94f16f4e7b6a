import tessera as ts

with ts.track_shapes():
    ts.zeros(3, ts.u8) + 256
