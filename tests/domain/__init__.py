"""Tests of the facts and rules."""
