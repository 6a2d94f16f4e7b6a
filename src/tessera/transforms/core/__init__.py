"""The base of all passes: the context, facts, rewriting, folding, legality and cleaning up."""
