"""The frame of all interpreters, scalars, and the state that ops act on."""
