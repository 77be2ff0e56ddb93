"""The door for front ends."""
