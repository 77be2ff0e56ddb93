"""Tests of plans and dispatch."""
