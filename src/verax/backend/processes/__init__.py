"""Processes that run one program: how they find and watch each other (floor 4).

The work is done by jaxlib: its coordination service, which process 0 runs, and the
collectives of Gloo and NCCL, which find each other through it.
"""
