"""Plans and their way to work: what a fleet is told to do, and in which order."""
