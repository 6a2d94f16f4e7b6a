"""Operators of networks beside those of `networks`: activations, losses, convolutions, pooling, resizing."""
