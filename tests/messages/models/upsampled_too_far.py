import tessera as ts

x, weights = ts.ones((1, 4, 8, 8)), ts.ones((4, 2, 3, 3))
ts.conv_transpose2d(x, weights, stride=2, padding=1, output_padding=2)
