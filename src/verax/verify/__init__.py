"""Floor 6: the verification kit: every law of the library as a generated test.

One idea: a law is a plain function on a case (a program and values), so it can be run
on a row of the table, on a random program, or on a function of a user alike::

    for report in check_row(sin_p, engine):
        print(report)
"""
