"""Tests of the benchmarks: they run, small, and say what they should; no test asserts seconds."""
