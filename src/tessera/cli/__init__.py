"""What people type: the `tessera` command."""
