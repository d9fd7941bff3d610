"""What mypy sees of the public names."""
