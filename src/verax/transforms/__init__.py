"""Floor 3: transformations, each a pure function from jaxprs to jaxprs.

Every function takes the engine, which holds the rule table, so a research table goes
wherever the standard one goes::

    engine = StandardEngine(RuleTable())
    tangent_program, nonzero = engine.jvp(jaxpr, (True,))
"""
