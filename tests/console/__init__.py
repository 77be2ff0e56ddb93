"""Tests of the control room: keys, pictures and costs."""
