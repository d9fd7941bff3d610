"""Floor 4: from a module to an executable, and executables on disk.

One idea: `executable` compiles and runs; what decides about its code is in its key.
"""
