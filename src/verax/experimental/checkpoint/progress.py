"""A bar on the terminal for the bytes of a checkpoint, on request."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from verax.ir.facade import module_named


def bar(
    title: str, sizes: Sequence[int]
) -> Callable[[], AbstractContextManager[Callable[[int], None]]]:
    """A context that shows a bar, and gives the function that moves it on.

    Raises:
        ImportError: the package `rich` is missing.
    """
    try:
        rich = module_named("rich.progress")
    except ModuleNotFoundError:
        raise ImportError("progress=True needs the package rich: install it") from None

    @contextmanager
    def shown() -> Iterator[Callable[[int], None]]:
        columns = [
            rich.TextColumn("{task.description}"),
            rich.BarColumn(),
            rich.DownloadColumn(),
            rich.TransferSpeedColumn(),
            rich.TimeRemainingColumn(),
        ]
        with rich.Progress(*columns) as live:
            task = live.add_task(title, total=sum(sizes))
            yield lambda count: live.advance(task, count)

    return shown
