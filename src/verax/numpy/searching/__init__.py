"""Floor 6: sorting, searching, sets, histograms.

One idea: what is sorted answers questions by position.
"""
