"""Floor 2: the rows that touch references, for the table of all rows.

They stand a floor below, since references are made of them::

    get_ref a        set_ref a b        new_ref b        freeze a
"""

from verax.rules.rows.references import TOUCHING as ROWS

__all__ = ["ROWS"]
