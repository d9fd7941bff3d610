"""Floor 6: sorting, searching, sets, histograms.

What is sorted answers questions by position.
"""
