"""What all passes build on: the context, facts, rewriting, folding, legality and cleaning up."""
