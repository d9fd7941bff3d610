"""Floor 5: looking at programs: as jaxprs, for NaNs, for impure code.

The function is traced as usual, and the program is shown, not run.
"""
