"""The one way from IR to machine code: options, targets, stage lists that are tried in order, and what was refused."""
