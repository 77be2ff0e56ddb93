"""Everything that `council` does without a control room: runs, reads and what they print."""
