"""What fills the terminal: one file per screen."""
