"""Floor 5: from a Python function to a jaxpr, and its application.

Every transformation traces (`trace`), rewrites and applies (`apply`).
"""
