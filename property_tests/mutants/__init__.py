"""Who checks the checker: rules are made wrong on purpose, and the laws must notice.

One idea: a mutant is the changed source of one module, loaded in a process of its own;
nothing is written to `src`::

    python -m property_tests.mutants --sample 200

`kinds` says what is changed, `trial` loads a mutant and holds it to the laws, `reach`
finds out which calls run which line, `__main__` samples, runs and counts.
"""
