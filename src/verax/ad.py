"""Floor 6: what is said about gradients that go into references, under JAX's names.

The entries of `with_refs`, and what its results are where nothing is returned::

    _, pull = verax.vjp(f, params, data)
    pull.with_refs(grad_ref, verax.ad.DontWant())(ct)   # (GradRef(), DidntWant())
"""

from verax.api.autodiff.pullback import (
    DidntWant as DidntWant,
    DontWant as DontWant,
    GradRef as GradRef,
    GradValue as GradValue,
)
from verax.api.custom.backward_logs import CondSum as CondSum

__all__ = ["CondSum", "DidntWant", "DontWant", "GradRef", "GradValue"]
