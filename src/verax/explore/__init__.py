"""Floor 6: programs one can look at, as one page that opens in any browser."""
