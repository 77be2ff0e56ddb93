"""Tests of the command line without a control room."""
