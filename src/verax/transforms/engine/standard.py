"""Floor 3: the engine of the standard table, which every entry point shares.

One idea: rewrites are memoised for each engine, so there is one for the library's own
rows, and a research table makes another::

    STANDARD.jvp(jaxpr, (True,))
    StandardEngine(standard | my_rows, CORE)
"""

from verax.ops.core import CORE
from verax.rules.programs.derived import standard
from verax.transforms.engine.engine import StandardEngine

STANDARD = StandardEngine(standard, CORE)
"""The transformations under the table of the library."""
