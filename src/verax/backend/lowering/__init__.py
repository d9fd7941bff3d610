"""Floor 4: from a jaxpr to the text of a StableHLO module.

One idea: `lower` is the way in; it runs the passes (`transforms/pipeline`), writes
functions (`function_writer`) into a module (`module_writer`), each kind of equation
from a template (`equation_templates`).
"""
