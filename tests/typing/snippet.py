"""What users write, for `test_signatures.py`: mypy's answers are in the comments.

# E: the code of the error that mypy reports on the line; # R: the type it reveals.
"""

from typing import reveal_type

import verax
import verax.numpy as vnp
from verax import Array


def model(weights: dict[str, Array], image: Array, *, scale: float = 1.0) -> Array:
    return weights["w"] @ image * scale


jitted = verax.jit(model)
reveal_type(jitted({}, vnp.ones(2)))  # R: verax.rules.values.array.Array
jitted({}, vnp.ones(2), scale=2.0)
jitted({}, "image")  # E: arg-type
jitted({}, vnp.ones(2), size=2.0)  # E: call-arg
jitted(vnp.ones(2))  # E: call-arg, arg-type


@verax.jit
def plain(x: Array, count: int) -> tuple[Array, int]:
    return x, count


reveal_type(plain(vnp.ones(2), 3))  # R: tuple[verax.rules.values.array.Array, int]
plain(vnp.ones(2), "three")  # E: arg-type


@verax.jit(static_argnames="count")
def configured(x: Array, count: int) -> Array:
    return x * count


reveal_type(configured(vnp.ones(2), count=3))  # R: verax.rules.values.array.Array
configured(vnp.ones(2), counts=3)  # E: call-arg

gradient = verax.grad(model, argnums=(0, 1))
gradient({}, vnp.ones(2), scale=0.5)
gradient({}, 3)  # E: arg-type

slope = verax.value_and_grad(plain)
reveal_type(slope(vnp.ones(2), 3)[1])  # R: Any
slope(3, 3)  # E: arg-type

batched = verax.vmap(plain, in_axes=(0, None))
reveal_type(batched(vnp.ones(2), 3))  # R: tuple[verax.rules.values.array.Array, int]
batched()  # E: call-arg

nested = verax.jit(verax.vmap(verax.grad(model)))
nested({}, vnp.ones(2))
nested({}, None)  # E: arg-type

jaxpr = verax.make_jaxpr(plain)
jaxpr(vnp.ones(2), 3)
jaxpr(vnp.ones(2), x=3)  # E: call-arg, misc

x = vnp.ones((2, 3))
reveal_type(x + 1)  # R: verax.rules.values.array.Array
reveal_type(2 * x @ x.T)  # R: verax.rules.values.array.Array
reveal_type(x.sum(axis=0))  # R: verax.rules.values.array.Array
reveal_type(x[0])  # R: verax.rules.values.array.Array
reveal_type(x.shape)  # R: tuple[int, ...]
reveal_type(vnp.sin(x))  # R: verax.rules.values.array.Array
reveal_type(verax.nn.relu(x))  # R: verax.rules.values.array.Array
key = verax.random.key(0)
reveal_type(verax.random.normal(key, (2,)))  # R: verax.rules.values.array.Array
reveal_type(float(x.mean()))  # R: float

reveal_type(vnp.where(vnp.ones(2) > 0, 1.0, 2.0))  # R: verax.rules.values.array.Array
reveal_type(vnp.where(vnp.ones(2) > 0))  # R: tuple[verax.rules.values.array.Array, ...]
