"""Floor 1: what a rule is: rows and tables of them, the builder, the emitter.

All that is known of a primitive is one row (`row`); rules write equations through
`builder` and StableHLO through `emitter`.
"""
