"""The wiring: it joins the floors, once, when verax is imported (floor 6).

One idea: a floor cannot see those above it, so each leaves a place for what it needs
from them, and this module fills the places: which interpreter computes outside of
traces, which functions are behind the operators and methods of arrays, which primitives
the names in printed programs mean. They are given by name where possible, so that most
of them are loaded when they are first used::

    Operators.namespace = numpy    # x + y is verax.numpy.add(x, y)
"""

from verax import numpy
from verax.api.config.config import compute_on_devices, from_environment
from verax.api.tracing.apply import EAGER
from verax.ir.facade import Imports
from verax.ir.library import Explorable, Library
from verax.ir.meshes import TypeShardings
from verax.rules.guards import keeping
from verax.rules.rows.builder import Builder
from verax.rules.rows.infer import inferred
from verax.rules.values.array import Operators
from verax.rules.values.lazy import LazyFunction, LazyMapping
from verax.rules.values.state import State

State.interpreter = State.eager = EAGER
State.accelerate = staticmethod(compute_on_devices)
Operators.namespace = numpy
Builder.reference = LazyFunction("verax.rules.rows.references", "TracedRef")
Builder.evened = LazyFunction("verax.ops.structure.casts", "evened")
# What an import makes stays, so the collector waits for it.
Imports.around = staticmethod(keeping)
Library.primitives = LazyMapping("verax.ops.table", "PRIMITIVES")
Library.typing = staticmethod(inferred)
Explorable.page = LazyFunction("verax.explorer.stories", "page_of")
TypeShardings.unsaid = LazyFunction("verax.backend.placement.mesh_context", "unsaid")
TypeShardings.said = LazyFunction("verax.backend.placement.mesh_context", "said")
TypeShardings.in_force = LazyFunction(
    "verax.backend.placement.mesh_context", "in_force"
)
TypeShardings.unspoken = LazyFunction(
    "verax.backend.placement.mesh_context", "unspoken"
)
TypeShardings.resolved = LazyFunction("verax.api.sharding_args", "over_a_mesh")
TypeShardings.called = LazyFunction("verax.ops.calls.call", "call")
from_environment()
