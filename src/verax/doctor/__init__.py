"""Floor 6: `python -m verax doctor`: what a bug report should say, and what is wrong.

One idea: each check is a function that returns findings, and a check that fails itself
is a finding, too; so there always is a report, on a broken installation above all::

    python -m verax doctor
    python -m verax doctor --json
"""
