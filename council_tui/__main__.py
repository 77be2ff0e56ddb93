"""`python -m council_tui` is the `council` command."""

from council_tui.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
