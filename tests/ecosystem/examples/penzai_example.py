"""Penzai: named arrays, and a model whose parts are selected."""

import jax
import jax.numpy as jnp
from penzai import pz
from penzai.models import simple_mlp


def main() -> None:
    x = pz.nx.wrap(jnp.arange(6.0).reshape(2, 3)).tag("rows", "columns")
    print(pz.nx.nmap(jnp.sum)(x.untag("columns")).unwrap("rows").tolist())
    model = simple_mlp.MLP.from_config(
        name="mlp", init_base_rng=jax.random.key(0), feature_sizes=[3, 4, 1]
    )
    features = pz.nx.wrap(jnp.ones(3)).tag("features")
    print(model(features).unwrap("features").tolist())
    print(pz.select(model).at_instances_of(pz.Parameter).count())


if __name__ == "__main__":
    main()
