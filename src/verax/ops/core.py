"""Floor 2: the basic operations, as the families of floor 1 ask for them.

One idea: families are made before there are rows, so they reach addition, broadcasting
and the like through the engine, which carries this record::

    engine.core.add(x, y)
"""

from collections.abc import Sequence

from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import DType
from verax.ir.jaxpr import Jaxpr
from verax.ir.meshes import Axes, Explicit, MeshType
from verax.ops.control.scan import scan_p
from verax.ops.control.scan_params import ScanParams
from verax.ops.elementwise import arith, convert
from verax.ops.reductions import reduce
from verax.ops.structure import create
from verax.ops.structure.shape import broadcast_in_dim, reshape, transpose
from verax.rules.values.array import Array


class CoreOperations:
    """`CoreOps`, by the functions of the ops files."""

    def add(self, x: Array, y: Array) -> Array:
        return arith.add(x, y)

    def zeros(self, aval: ShapedArray) -> Array:
        return create.zeros(aval)

    def broadcast_in_dim(self, x: Array, shape: Shape, dimensions: Shape) -> Array:
        return broadcast_in_dim(x, shape, dimensions)

    def reduce_sum(self, x: Array, axes: Shape) -> Array:
        return reduce.reduce_sum(x, axes)

    def transpose(self, x: Array, permutation: Shape) -> Array:
        return transpose(x, permutation)

    def reshape(self, x: Array, shape: Shape) -> Array:
        return reshape(x, shape)

    def convert(self, x: object, dtype: DType, weak_type: bool = False) -> Array:
        return convert.convert(x, dtype, weak_type)

    def reshard(
        self, x: Array, explicit: Explicit | None, mesh: MeshType | None = None
    ) -> Array:
        from verax.ops.structure.reshard import retyped

        return retyped(x, explicit, mesh)

    def sum_over(self, x: Array, axes: Axes, sizes: Shape) -> Array:
        """The sum over the elements along named axes."""
        from verax.ops.parallel.collectives import psum

        return psum(x, axes, sizes)

    def map_elements(
        self, jaxpr: Jaxpr, size: int, fixed: Sequence[Array], stacks: Sequence[Array]
    ) -> Sequence[Array]:
        """`jaxpr` on `fixed` and each batch element of `stacks`, one after another."""
        linear = (False,) * (len(fixed) + len(stacks))
        params = ScanParams(jaxpr, size, linear, 0, len(fixed), False, 1)
        return scan_p.bind(params, *fixed, *stacks)


CORE = CoreOperations()
