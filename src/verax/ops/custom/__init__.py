"""Floor 2: primitives with rules of the user's own.

The rules travel as jaxprs among the params; one file for each kind of rule.
"""
