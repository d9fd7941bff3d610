"""Floor 5: the specs of `shard_map`: whom they are for, and what does not fit them.

One idea: a spec is for each leaf below it; where there is None, the function gets what
was passed, as it is, and only the others are arrays that parts are made of::

    Dealt(f, (None, P("x")), (options, xs))
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any

from attrs import frozen

from verax.api.sharding_args import place_entries
from verax.api.tracing.argument_names import function_name
from verax.api.tracing.wrapping import wraps
from verax.backend import pytrees
from verax.backend.placement.mesh import PartitionSpec
from verax.backend.placement.sharding import NamedSharding
from verax.ir.avals import Shape
from verax.ir.records import ReprMixin


def has_static(in_specs: Any) -> bool:
    """Whether some arguments are not made of parts.

    >>> has_static((None, PartitionSpec())), has_static(PartitionSpec("x"))
    (True, False)
    """
    return None in pytrees.flatten(in_specs, lambda x: x is None)[0]


@frozen(eq=False, repr=False)
class Dealt(ReprMixin):
    """A function of those leaves of its arguments that have specs."""

    f: Callable[..., Any]
    in_specs: Any
    args: tuple[Any, ...]

    @cached_property
    def entries(self) -> list[Any]:
        """The spec of each leaf, or None.

        Raises:
            ValueError: the specs are no prefix of the arguments.
        """
        specs = tuple(self.in_specs) if type(self.in_specs) is list else self.in_specs
        return place_entries("shard_map in_specs", specs, self.args)

    @property
    def specs(self) -> tuple[Any, ...]:
        return tuple([spec for spec in self.entries if spec is not None])

    @property
    def arrays(self) -> list[Any]:
        """The leaves that have specs."""
        leaves = pytrees.flatten(self.args)[0]
        return [
            x for x, spec in zip(leaves, self.entries, strict=True) if spec is not None
        ]

    @property
    def function(self) -> Callable[..., Any]:
        """The function of these leaves alone."""
        leaves, tree = pytrees.flatten(self.args)

        @wraps(self.f)
        def of_arrays(*arrays: Any) -> Any:
            own = iter(arrays)
            pairs = zip(leaves, self.entries, strict=True)
            merged = [x if spec is None else next(own) for x, spec in pairs]
            return self.f(*tree.unflatten(merged))

        return of_arrays


def check_part(
    f: object, place: NamedSharding, shape: Shape, what: Callable[[], str]
) -> None:
    """Raise ValueError unless an argument of this shape can be made of parts."""
    name, spec = function_name(f), place.spec
    if len(spec) > len(shape):
        raise too_long(name, "in", spec, what(), shape)
    try:
        place.check(shape, what)
    except ValueError as error:
        raise ValueError(
            f"shard_map applied to the function {name!r} was given an argument that "
            f"is not evenly divisible by the mesh axes in its in_specs, {spec}: {error}"
        ) from None


def too_long(
    name: str, prefix: str, spec: PartitionSpec, what: str, shape: Shape
) -> ValueError:
    """The error of a spec with more entries than an array has dimensions."""
    advice = (
        ""
        if shape
        else f"; for scalar values (rank 0), consider using an {prefix}_specs entry of "
        "`P()`, or give them a dimension to be put together along"
    )
    return ValueError(
        f"shard_map applied to the function {name!r} was given an {prefix}_specs entry "
        f"which is too long: it is {spec}, which has length {len(spec)}, but {what} "
        f"has shape {shape}, which has rank {len(shape)}{advice}"
    )
