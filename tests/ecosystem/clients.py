"""The libraries of the table: what each is called, and where its example is.

An example is named after its library, but never like it, so that it can import it::

    find(["optax"])[0].example      # examples/optax_example.py
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Client:
    """A library: its row's name, its distribution, how closely its numbers agree."""

    name: str
    distribution: str
    tolerance: float = 1e-4

    @property
    def example(self) -> Path:
        """The program that uses it."""
        return HERE / "examples" / f"{self.name}_example.py"


CLIENTS = (
    Client("optax", "optax"),
    Client("flax_linen", "flax", tolerance=1e-3),
    Client("flax_optax", "flax", tolerance=1e-3),
    Client("flax_nnx", "flax", tolerance=1e-3),
    Client("haiku", "dm-haiku"),
    Client("keras", "keras", tolerance=1e-2),
    Client("equinox", "equinox"),
    Client("diffrax", "diffrax"),
    Client("lineax", "lineax"),
    Client("optimistix", "optimistix"),
    Client("quax", "quax"),
    Client("penzai", "penzai"),
    Client("chex", "chex"),
    Client("distrax", "distrax"),
    Client("numpyro", "numpyro"),
    Client("blackjax", "blackjax", tolerance=1e-2),
    Client("gpjax", "gpjax"),
    Client("tinygp", "tinygp"),
    Client("jaxopt", "jaxopt"),
    Client("jax_md", "jax-md"),
    Client("e3nn", "e3nn-jax"),
    Client("gymnax", "gymnax"),
    Client("evosax", "evosax"),
    Client("einops", "einops"),
    Client("jaxtyping", "jaxtyping"),
)


def find(names: Sequence[str]) -> tuple[Client, ...]:
    """The clients of those names, or all; ValueError where a name is unknown."""
    by_name = {client.name: client for client in CLIENTS}
    unknown = sorted(set(names) - set(by_name))
    if unknown:
        raise ValueError(f"no client is called {unknown}; there are {list(by_name)}")
    return tuple(by_name[name] for name in names) if names else CLIENTS
