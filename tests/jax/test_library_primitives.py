"""Primitives of libraries: rules that trace functions, and batch rules with an axis."""

import pytest

from tests.jax.programs import output

WIDE = """
import jax, jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import mlir

def work(x):
    return [x * 2, jnp.asarray(1.0)]

def types(x):
    made = jax.eval_shape(work, jax.ShapeDtypeStruct(x.shape, x.dtype))
    return [jax.core.ShapedArray(s.shape, s.dtype) for s in made]

p = Primitive("p")
p.multiple_results = True
p.def_impl(work)
p.def_abstract_eval(types)
mlir.register_lowering(p, mlir.lower_fun(work, multiple_results=True))

def dtypes(x):
    return [str(y.dtype) for y in jax.jit(lambda x: p.bind(x))(x)]

print(dtypes(jnp.ones(2, jnp.float32)))
with jax.enable_x64(True):
    print(dtypes(jnp.ones(2)), dtypes(jnp.ones(2, jnp.int32)))
print(dtypes(jnp.ones(2, jnp.float32)))
"""


@pytest.mark.slow
def test_a_type_rule_that_traces_sees_x64_as_it_was_where_the_primitive_was_bound() -> (
    None
):
    assert output("-c", WIDE).splitlines() == [
        "['float32', 'float32']",
        "['float64', 'float64'] ['int32', 'float64']",
        "['float32', 'float32']",
    ]


AXES = """
import jax, jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import batching, mlir

def make(name, table, rule):
    p = Primitive(name)
    p.def_impl(lambda x: x * 2)
    p.def_abstract_eval(lambda x: x)
    mlir.register_lowering(p, mlir.lower_fun(lambda x: x * 2, multiple_results=False))
    table[p] = rule(p)
    return p

def pieces(p):
    def rule(size, name, kind, args, dims):
        print(size, kind, dims)
        return p.bind(*args), dims[0]
    return rule

def whole(p):
    def rule(axis, args, dims):
        print(axis.size, dims)
        return p.bind(*args), dims[0]
    return rule

p = make("p", batching.axis_primitive_batchers, pieces)
q = make("q", batching.fancy_primitive_batchers, whole)
x = jnp.arange(6.0).reshape(2, 3)
print(jax.vmap(p.bind, in_axes=1)(x).shape, jax.vmap(q.bind)(x).shape)
"""


@pytest.mark.slow
def test_batch_rules_are_told_of_the_axis_whole_or_in_pieces() -> None:
    assert output("-c", AXES).splitlines() == [
        "3 None (1,)",
        "2 (0,)",
        "(3, 2) (2, 3)",
    ]
