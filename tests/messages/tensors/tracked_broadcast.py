import tessera as ts

with ts.track_shapes():
    weights = ts.zeros((4, 6)).T.reshape(3, 8)
    scores = ts.ones((5, 8)) * weights
