"""Floor 2: convolutions.

`primitive` holds the row with its derivatives, `impl` how it evaluates and lowers,
`dimensions` what the dimensions mean, `functions` what users call.
"""
