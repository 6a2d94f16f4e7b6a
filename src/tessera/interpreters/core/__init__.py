"""The frame of all interpreters, scalars, and the state that programs act on."""
