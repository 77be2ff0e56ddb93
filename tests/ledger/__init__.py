"""The ledger: what it accepts, what it refuses, and what others say about the same bytes."""
