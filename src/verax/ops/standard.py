"""Floor 2: the standard table, which takes every primitive as its row says.

One idea: a table is what is changed about the rows, and a row travels with its
primitive, so that the table that changes nothing is an empty one::

    standard | {sin_p: evolve(sin_p, jvp=my_rule)}
"""

from verax.rules.programs.derived import completed
from verax.rules.rows.row import RuleTable

standard = RuleTable(complete=completed)
