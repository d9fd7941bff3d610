"""Floor 2: random bits and typed keys.

A generator is a function from words to words (`threefry`, `rbg`), listed in
`generators`; the rows in `keys` call the one that a key's dtype names.
"""
