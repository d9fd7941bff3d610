"""Floor 2: reading and writing at positions that are known at run time.

`gather` and `scatter` hold the rows and what users call, `gather_impl` and
`scatter_impl` how they evaluate and lower, `geometry` the dimension numbers of both.
"""
