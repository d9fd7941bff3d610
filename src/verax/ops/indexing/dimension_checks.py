"""Floor 2: what is wrong with the dimension numbers of a gather or scatter.

Both have the same five fields under different names, so the names in messages are read
from the class that the user wrote::

    lax.gather(x, indices, GatherDimensionNumbers((1, 0), ...), sizes)
    # TypeError: offset_dims in gather op must be sorted; got (1, 0)
"""

from collections.abc import Iterator

from attrs import astuple

from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import is_integer
from verax.ops.indexing.geometry import GatherDimensionNumbers, ScatterDimensionNumbers

type DimensionNumbers = GatherDimensionNumbers | ScatterDimensionNumbers


def check_dimensions(
    op: str, dims: DimensionNumbers, operand: ShapedArray, indices: ShapedArray
) -> None:
    """Raise TypeError unless the dimension numbers fit the operand and the indices."""
    for fault in faults(op, dims, operand, indices):
        raise TypeError(
            f"{fault}, for {dims} with operand {operand} and indices {indices}"
        )


def faults(
    op: str, dims: DimensionNumbers, operand: ShapedArray, indices: ShapedArray
) -> Iterator[str]:
    """What is wrong, the first of which is worth saying."""
    names = [a.name for a in dims.__attrs_attrs__]
    offsets, collapsed, mapped, batching, together = astuple(dims, recurse=False)
    batch, rank, title = indices.ndim - 1, operand.ndim, f"{op.capitalize()} op"
    if batch < 0:
        yield f"{title} takes indices of at least one dimension"
    if not is_integer(indices.dtype):
        yield f"{title} takes integer indices"
    yield from misplaced(op, names[0], offsets, batch + len(offsets))
    yield from misplaced(op, names[1], collapsed, rank)
    yield from misplaced(op, names[3], batching, rank)
    yield from misplaced(op, names[2], mapped, rank, ordered=False)
    yield from misplaced(op, names[4], together, batch + 1, ordered=False)
    if batch in together:
        yield f"{title} cannot have the index vector dimension as a batching dimension"
    for k, others in ((1, collapsed), (2, mapped)):
        if not set(others).isdisjoint(batching):
            yield f"{names[k]} and {names[3]} in {op} op must be disjoint"
    if indices.shape[-1] != len(mapped):
        yield (
            f"{title} has {len(mapped)} elements in {names[2]} and the bound of "
            f"dimension index_vector_dim={batch} of indices is {indices.shape[-1]}. "
            "These two numbers must be equal"
        )
    if len(batching) != len(together):
        yield f"{title} requires equal numbers of {names[3]} and {names[4]}"
    sizes = [operand.shape[d] for d in batching], [indices.shape[d] for d in together]
    if sizes[0] != sizes[1]:
        yield (
            f"{title} requires operand batching dimensions and indices batching "
            f"dimensions to have the same shape, not {sizes[0]} and {sizes[1]}"
        )
    window = len(offsets) + len(collapsed) + len(batching)
    if window != rank:
        yield (
            f"{title} has window of size {window}; doesn't match operand of rank "
            f"{rank}. Every dimension of the operand must be in {names[0]}, {names[1]} "
            f"or {names[3]}"
        )


def misplaced(
    op: str, name: str, dims: Shape, rank: int, ordered: bool = True
) -> Iterator[str]:
    """What is wrong with dimensions that must be distinct ones of `rank`."""
    if len(set(dims)) < len(dims):
        yield f"{name} in {op} op must not repeat; got {dims}"
    if ordered and list(dims) != sorted(dims):
        yield f"{name} in {op} op must be sorted; got {dims}"
    what = "set" if ordered or "batching" in name else "mapping"
    for d in dims:
        if not 0 <= d < rank:
            yield (
                f"Invalid {name} {what} in {op} op; valid range is [0, {rank}), got {d}"
            )


def check_slice_sizes(
    dims: GatherDimensionNumbers,
    operand: ShapedArray,
    indices: ShapedArray,
    slice_sizes: Shape,
) -> None:
    """Raise TypeError unless these are sizes of windows that a gather can read."""
    if len(slice_sizes) != operand.ndim:
        raise TypeError(
            "Gather op must have one slice size for every input dimension, but got "
            f"{slice_sizes} for {operand}"
        )
    pairs = zip(slice_sizes, operand.shape, strict=True)
    for d, (window, size) in enumerate(pairs):
        if indices.size and not 0 <= window <= size:
            raise TypeError(
                f"Slice size at index {d} in gather op is out of range: it must be in "
                f"[0, {size}] for {operand}, but is {window}"
            )
    for i, d in enumerate(dims.collapsed_slice_dims):
        if slice_sizes[d] != 1:
            raise TypeError(
                "Gather op can only collapse slice dims with bound 1, but bound is "
                f"{slice_sizes[d]} for index {d} at position {i}."
            )
    for i, d in enumerate(dims.operand_batching_dims):
        if slice_sizes[d] > 1:
            raise TypeError(
                "Gather op can only have operand batching dims with bound 0/1, but "
                f"bound is {slice_sizes[d]} for index {d} at position {i}."
            )
