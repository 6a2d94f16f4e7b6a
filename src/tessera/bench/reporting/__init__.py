"""How results leave a run: files, tables, one page, and the history of runs."""
