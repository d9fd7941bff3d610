"""Floor 3: the transformations that the library is made of.

A transformation asks the engine for the rewrite of each equation, which is a template,
made once; one file for each transformation.
"""
