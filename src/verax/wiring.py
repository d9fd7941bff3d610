"""The wiring: it joins the floors, once, when verax is imported (floor 6).

One idea: a floor cannot see those above it, so each leaves a place for what it needs of
them, and this module fills the places: which interpreter computes where no program is
traced, which functions stand behind the operators and methods of arrays, which
primitives the names in text mean. Each says it by name, where it can, so that most of
what is joined is loaded when it is first used::

    Operators.namespace = numpy    # x + y is verax.numpy.add(x, y)
"""

from verax import numpy
from verax.api.config.config import from_environment
from verax.api.tracing.apply import EAGER
from verax.ir.library import Library
from verax.rules.rows.infer import inferred
from verax.rules.values.array import Operators
from verax.rules.values.lazy import LazyMapping
from verax.rules.values.state import State

State.interpreter = State.eager = EAGER
Operators.namespace = numpy
Library.primitives = LazyMapping("verax.ops.table", "PRIMITIVES")
Library.typing = staticmethod(inferred)
from_environment()
