"""Floor 2: the rows that touch references, for the table of all rows.

They stand a floor below, since references are made of them::

    get_ref a        set_ref a b        new_ref b        freeze a
"""

from verax.rules.rows.references import freeze_p, get_ref_p, new_ref_p, set_ref_p
from verax.rules.rows.row import Rows

ROWS: Rows = (get_ref_p, set_ref_p, new_ref_p, freeze_p)
