"""The control room for a fleet of AI agents. Nothing but the version is imported here."""

__version__ = "0.1.0"
