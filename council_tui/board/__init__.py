"""The source of truth: an append-only journal and the tables derived from it, written by one process."""
