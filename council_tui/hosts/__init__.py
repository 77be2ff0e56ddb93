"""Where a runner starts: this machine."""
