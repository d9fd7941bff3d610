"""Floor 2: folds along dimensions: sums, extremes and their places, running folds.

One idea: `verax.rules.families.reducer` and `cumulative` hold what the rows share.
"""
