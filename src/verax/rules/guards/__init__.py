"""Floor 1: what holds within a block and is undone after it, come what may.

An interrupt may come anywhere, so what undoes a block is a call of C.
"""
