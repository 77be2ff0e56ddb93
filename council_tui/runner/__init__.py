"""The other side of the socket: one runner per agent, which holds its key and guards its body."""
