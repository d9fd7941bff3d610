"""Floor 2: branches and loops.

A row lies in the file of its name (`cond`, `scan`, `while_`), its params in `*_params`,
its lowering in `*_lowering`, its transpose and residuals beside them.
"""
