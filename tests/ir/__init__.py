"""Examples for the floor of pure data."""
