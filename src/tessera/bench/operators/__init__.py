"""The operators that ship with their implementations: ours, and the peers' beside them."""
