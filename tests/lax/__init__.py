"""Control flow and the rest of lax, as users call it."""
