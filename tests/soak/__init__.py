"""Long runs of mixed work: `python -m tests.soak --seconds 300`."""
