"""On a real pseudo-terminal: what no headless test can see."""
