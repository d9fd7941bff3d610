"""Floor 5: looking at programs: as jaxprs, for NaNs, for impure code.

One idea: the function is traced as ever, and what comes of it is shown, not run.
"""
