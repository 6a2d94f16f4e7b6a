import tessera as ts

with ts.track_shapes():
    mask = ts.arange(6).reshape(2, 3) % 2
    ts.ones((2, 3), ts.bf16) * mask
