"""Floor 2: primitives that call: a program, a function of the host, an exported one.

The program inside is a jaxpr among the params, and `subjaxprs` has what the rules of
such rows share.
"""
