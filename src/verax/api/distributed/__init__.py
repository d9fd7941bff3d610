"""Processes that run one program: joining them, and messages (floor 5).

How a process is told of the others, what a launcher has put into the environment, and
what processes send each other beside the arrays of programs.
"""
