"""Floor 3: programs whose products are in a narrow type, and all else in a wide one.

A plan says what is narrowed and what stays; a writer makes the program, each value of
which is rounded once; a call keeps the wide program for derivatives.
"""
