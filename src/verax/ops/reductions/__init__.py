"""Floor 2: folds along dimensions: sums, extremes and their places, running folds.

`verax.rules.families.reducer` and `cumulative` hold what the rows share.
"""
