"""Floor 1: what the rows of a family share.

A family is a function that makes rows; a row says what is peculiar to it.
"""
