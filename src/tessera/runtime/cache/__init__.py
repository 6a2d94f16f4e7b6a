"""The compile cache on disk, and the identity of the compiler."""
