"""Signed proof: keys, entries, the log and its verification."""
