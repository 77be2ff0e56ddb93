"""The plans that ship with the package."""
