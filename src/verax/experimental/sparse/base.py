"""The base of all sparse arrays.

They are pytrees of dense buffers with a shape. What a format lacks, it refuses::

    issubclass(BCOO, JAXSparse)
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, Protocol, Self, override

from verax.experimental.sparse.buffers import common_batch
from verax.experimental.sparse.util import Shape, SparseInfo
from verax.ir.dtypes import DType
from verax.rules.rows.builder import Tracer
from verax.rules.values.array import Array


class JAXSparse(ABC):
    """A sparse array: buffers, of which the first holds the stored elements."""

    __module__ = "verax.experimental.sparse"
    __hash__ = None  # type: ignore[assignment]  # attributes may be set
    # NumPy arrays leave operators to this class.
    __array_priority__ = 100
    __array_ufunc__ = None

    namespace: ClassVar[Any] = None
    """The functions behind operators and methods; the package fills this place."""
    data: Array

    @property
    @abstractmethod
    def shape(self) -> Shape:
        """The shape of the array."""

    @property
    def dtype(self) -> DType:
        return self.data.dtype

    @property
    def nse(self) -> int:
        """The number of elements that are stored."""
        return int(self.data.shape[0])

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def details(self) -> str:
        """The end of `repr`, after the number of stored elements."""
        return ""

    @override
    def __repr__(self) -> str:
        name = type(self).__name__
        try:
            shape = list(self.shape)
            text = f"{name}({self.dtype}{shape}, nse={self.nse}{self.details()})"
        except Exception:  # buffers that do not fit each other, or none
            return f"{name}(<invalid>)"
        if isinstance(self.data, Tracer):
            text = f"{type(self.data).__name__}[{text}]"
        return text

    @abstractmethod
    def tree_flatten(self) -> tuple[Sequence[Array], Any]: ...

    @classmethod
    @abstractmethod
    def tree_unflatten(cls, aux_data: Any, children: Sequence[Array]) -> Self: ...

    def with_data(self, data: Array) -> Self:
        """The array with other elements at the same places."""
        buffers, static = self.tree_flatten()
        return type(self).tree_unflatten(static, (data, *buffers[1:]))

    @abstractmethod
    def transpose(self, axes: Sequence[int] | None = None) -> Any: ...

    @abstractmethod
    def todense(self) -> Array:
        """The dense array."""

    @property
    def T(self) -> Any:
        """The transpose."""
        return self.transpose()

    def block_until_ready(self) -> Self:
        """Wait until the buffers are computed."""
        for x in self.tree_flatten()[0]:
            x.block_until_ready()
        return self

    def refused(self, name: str) -> NotImplementedError:
        return NotImplementedError(
            f"{type(self).__name__}.{name}; convert to BCOO, which has all operations"
        )

    def sum(self, *args: object, **kwargs: object) -> Any:
        """Refused by formats that have no sums."""
        raise self.refused("sum")

    def __matmul__(self, other: object) -> Any:
        return self.namespace.operate("matmul", self, other)

    def __rmatmul__(self, other: object) -> Any:
        return self.namespace.operate("matmul", other, self)


class Operators(JAXSparse):
    """A sparse array with operators, which are those of dense arrays, sparsified."""

    __module__ = "verax.experimental.sparse"

    def __neg__(self) -> Any:
        return self.namespace.operate("negative", self)

    def __pos__(self) -> Any:
        return self.namespace.operate("positive", self)

    def __abs__(self) -> Any:
        return self.namespace.operate("abs", self)

    def __mul__(self, other: object) -> Any:
        return self.namespace.operate("multiply", self, other)

    def __rmul__(self, other: object) -> Any:
        return self.namespace.operate("multiply", other, self)

    def __truediv__(self, other: object) -> Any:
        return self.namespace.operate("true_divide", self, other)

    def __rtruediv__(self, other: object) -> Any:
        return self.namespace.operate("true_divide", other, self)

    def __add__(self, other: object) -> Any:
        return self.namespace.operate("add", self, other)

    def __radd__(self, other: object) -> Any:
        return self.namespace.operate("add", other, self)

    def __sub__(self, other: object) -> Any:
        return self.namespace.operate("subtract", self, other)

    def __rsub__(self, other: object) -> Any:
        return self.namespace.operate("subtract", other, self)

    def __pow__(self, other: object) -> Any:
        return self.namespace.power(self, other)

    def __getitem__(self, index: object) -> Any:
        return self.namespace.item(self, index)


class Static(NamedTuple):
    """The static part of an array with batch dimensions, as a pytree."""

    element: Shape
    indices_sorted: bool
    unique_indices: bool


class Kinds(Protocol):
    """The number of dimensions of each kind."""

    @property
    def n_batch(self) -> int: ...
    @property
    def n_dense(self) -> int: ...


class Batched(JAXSparse):
    """A sparse array with batch dimensions before the sparse ones, dense ones after."""

    __module__ = "verax.experimental.sparse"

    indices: Array
    element: Shape
    """The shape of one batch element. Batch dimensions are those of the buffers, so
    that `vmap` and `scan` take them off and add them as they do for any array."""
    indices_sorted: bool
    unique_indices: bool

    @property
    @abstractmethod
    def n_batch(self) -> int: ...

    @property
    @abstractmethod
    def _bufs(self) -> tuple[Array, ...]: ...

    @property
    @abstractmethod
    def layout(self) -> Kinds:
        """The number of dimensions of each kind, and of stored elements.

        Raises:
            ValueError: the buffers do not fit each other, or the shape.
        """

    @property
    @override
    def shape(self) -> Shape:
        return (*common_batch(*self._bufs, n_batch=self.n_batch), *self.element)

    @property
    def n_dense(self) -> int:
        return self.data.ndim - 1 - self.n_batch

    @property
    def _info(self) -> SparseInfo:
        return SparseInfo(self.shape, self.indices_sorted, self.unique_indices)

    @override
    def details(self) -> str:
        layout = self.layout
        batch = f", n_batch={layout.n_batch}" if layout.n_batch else ""
        return batch + (f", n_dense={layout.n_dense}" if layout.n_dense else "")

    @override
    def tree_flatten(self) -> tuple[tuple[Array, ...], Static]:
        static = Static(self.element, self.indices_sorted, self.unique_indices)
        return self._bufs, static
