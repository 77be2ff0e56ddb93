"""The tools of the repo-audit plan: one small read-only program a card, standard library only."""
