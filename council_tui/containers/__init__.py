"""How a kind of agent is started and how what it leaves behind becomes a result."""
