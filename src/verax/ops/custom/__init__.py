"""Floor 2: primitives with rules of the user's own.

One idea: the rules travel as jaxprs among the params; one file for each kind of rule.
"""
