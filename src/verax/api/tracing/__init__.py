"""Floor 5: from a Python function to a jaxpr, and its application.

One idea: every transformation traces (`trace`), rewrites and applies (`apply`).
"""
