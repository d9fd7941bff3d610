"""Rows of programs: what is printed, linked to what it came from, and costs (floor 6).

A row is one line of a jaxpr, of StableHLO or of XLA's program. Each form has a writer
of its own; marks, links, costs and memory are the same for all::

    table.program(jaxpr, marked)
    link(table.rows, rows_before), fill_live(table.rows)
"""
