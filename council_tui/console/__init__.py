"""The control room: the only part of the program that knows Textual."""
