"""Floor 1: what a rule is: rows of columns, tables of rows, the builder, the families.

Rules are pure functions of values; a table is a value::

    rules = RuleTable() | {sin_p: evolve(sin_p, jvp=my_rule)}
"""
