"""Which shardings a program should have: a search, whose best XLA judges (floor 6)."""
