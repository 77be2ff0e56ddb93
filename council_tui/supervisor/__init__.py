"""Births, beats and deaths: the only part that starts a process, and the only one that ends it."""
