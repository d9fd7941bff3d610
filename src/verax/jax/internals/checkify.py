"""`jax.experimental.checkify`: the sets of checks, which are empty here."""

user_checks: frozenset[type] = frozenset()
nan_checks: frozenset[type] = frozenset()
index_checks: frozenset[type] = frozenset()
div_checks: frozenset[type] = frozenset()
float_checks: frozenset[type] = frozenset()
automatic_checks: frozenset[type] = frozenset()
all_checks: frozenset[type] = frozenset()
