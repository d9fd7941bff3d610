"""Floor 4: from a module to an executable, and executables on disk.

`executable` compiles and runs; all that decides about its code is in its key.
"""
