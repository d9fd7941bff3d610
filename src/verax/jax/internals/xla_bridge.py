"""`jax._src.xla_bridge`: the backends that have been started."""

from collections.abc import Iterator, Mapping
from typing import Any

from verax.backend.runtime.client import SLOT, platform_name


class Started(Mapping[str, Any]):
    """The clients by platform, as they are when it is read."""

    def running(self) -> dict[str, Any]:
        first = SLOT.client
        return SLOT.others | ({} if first is None else {platform_name(first): first})

    def __getitem__(self, platform: str) -> Any:
        return self.running()[platform]

    def __iter__(self) -> Iterator[str]:
        return iter(self.running())

    def __len__(self) -> int:
        return len(self.running())


_backends = Started()


def canonicalize_platform(platform: str) -> str:
    """The platform that is meant by a name: "gpu" is the kind of GPU there is.

    Raises:
        RuntimeError: there is no GPU.
    """
    if platform != "gpu":
        return platform
    there = [name for name in ("cuda", "rocm") if name in _backends]
    if not there:
        raise RuntimeError(
            f"Unknown backend: '{platform}' requested, but no platforms that are "
            f"instances of {platform} are present. Platforms present are: "
            f"{','.join(_backends)}"
        )
    return there[0]
