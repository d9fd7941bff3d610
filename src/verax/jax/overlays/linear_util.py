"""`jax.extend.linear_util`: functions in steps, as older programs build them."""

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

type Running = Generator[Any, Any, None]
type Step = Callable[..., Running]


class Store:
    """A place for one value, filled once."""

    def __init__(self) -> None:
        self.filled: list[object] = []

    def store(self, value: object) -> None:
        self.filled.append(value)

    @property
    def val(self) -> Any:
        if not self.filled:
            raise StoreException("the function has not been called yet")
        return self.filled[-1]


class StoreException(Exception):
    """A value was asked for before the function was called."""


type Around = tuple[Step, tuple[object, ...], Store | None]
"""A step, arguments of its own, and where it puts what it hands out."""


class WrappedFun:
    """A function of positional arguments with steps before and after it."""

    def __init__(
        self,
        f: Callable[..., Any],
        steps: tuple[Around, ...] = (),
        params: Mapping[str, object] | None = None,
    ) -> None:
        self.f, self.steps = f, steps
        self.params = params or {}

    def wrap(self, step: Around) -> "WrappedFun":
        return WrappedFun(self.f, (step, *self.steps), self.params)

    @property
    def __name__(self) -> str:
        return getattr(self.f, "__name__", "<unnamed function>")

    def call_wrapped(self, *args: object, **kwargs: object) -> Any:
        """The result, through all steps."""

        def call(
            steps: Sequence[Around],
            args: Sequence[object],
            kwargs: Mapping[str, object],
        ) -> Any:
            if not steps:
                return self.f(*args, **{**self.params, **kwargs})
            (step, extra, store), *rest = steps
            running = step(*extra, *args, **kwargs)
            inner_args, inner_kwargs = next(running)
            try:
                within = call(rest, inner_args, inner_kwargs)
            except BaseException:
                # Blocks that the step is in end now, and not when it is collected.
                running.close()
                raise
            out = running.send(within)
            if store is not None:
                out, aside = out
                store.store(aside)
            return out

        return call(self.steps, args, kwargs)


def wrap_init(
    f: Callable[..., object], params: Mapping[str, object] | None = None, **_: object
) -> WrappedFun:
    """A function to be transformed."""
    return WrappedFun(f, (), params)


def cache(call: Callable[..., Any], **_: object) -> Callable[..., Any]:
    """A memo of a function of wrapped functions, by their function and arguments."""
    results: dict[tuple[object, ...], object] = {}

    def cached(fun: WrappedFun, *args: object) -> Any:
        key = (fun.f, tuple([id(step) for step, *_ in fun.steps]), *args)
        if key not in results:
            results[key] = call(fun, *args)
        return results[key]

    return cached


def transformation(step: Step, fun: WrappedFun | None = None, *extra: object) -> Any:
    """A step before and after a function."""
    if fun is None:
        return lambda fun, *extra: transformation(step, fun, *extra)
    return fun.wrap((step, extra, None))


def with_aux(
    step: Step, fun: WrappedFun, *extra: object
) -> tuple[WrappedFun, Callable[[], Any]]:
    """A function with one more step, and what that step hands out."""
    store = Store()
    return fun.wrap((step, extra, store)), lambda: store.val


def transformation_with_aux(
    step: Step, fun: WrappedFun | None = None, *extra: object
) -> Any:
    """A step that also hands something out, and a function that gives it."""
    if fun is None:
        return lambda fun, *extra: with_aux(step, fun, *extra)
    return with_aux(step, fun, *extra)


def merge_linear_aux(
    aux1: Callable[[], object], aux2: Callable[[], object]
) -> tuple[bool, Any]:
    """The aux of the first of two steps that ran, at least one of which did."""
    try:
        return True, aux1()
    except StoreException:
        return False, aux2()
