"""The CUDA target: what blocks of threads do with tiles, down to PTX."""
