"""The only door for any front end: open a council, send intents in, pull frozen views out."""
