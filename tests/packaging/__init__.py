"""What is installed: metadata, and the distributions that are built of the sources."""
