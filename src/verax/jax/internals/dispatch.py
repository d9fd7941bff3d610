"""`jax._src.dispatch`: waiting for effects, and implementations by compiling."""

from verax import effects_barrier as wait_for_tokens
from verax.jax.overlays.xla import apply_primitive as apply_primitive

__all__ = ["apply_primitive", "runtime_tokens", "wait_for_tokens"]


class RuntimeTokens:
    """The tokens of effects that have not happened: XLA keeps them for verax."""

    def block_until_ready(self) -> None:
        """Wait for all effects."""
        wait_for_tokens()

    def clear(self) -> None:
        """Forget the tokens: there are none."""


runtime_tokens = RuntimeTokens()
