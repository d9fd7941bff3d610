"""Distrax: samples, densities, a transformed distribution and a hidden Markov model."""

import distrax
import jax
import jax.numpy as jnp


def main() -> None:
    normal = distrax.MultivariateNormalDiag(jnp.zeros(2), jnp.ones(2))
    print(normal.sample(seed=jax.random.key(0), sample_shape=3).tolist())
    print(float(normal.log_prob(jnp.ones(2))))
    squashed = distrax.Transformed(distrax.Normal(0.0, 1.0), distrax.Tanh())
    print(float(squashed.log_prob(0.5)))
    print(float(jax.grad(squashed.log_prob)(0.5)))
    print(float(distrax.Categorical(logits=jnp.arange(3.0)).entropy()))
    mixture = distrax.MixtureSameFamily(
        distrax.Categorical(probs=jnp.array([0.3, 0.7])),
        distrax.Normal(jnp.array([-1.0, 1.0]), jnp.ones(2)),
    )
    print(jax.jit(mixture.log_prob)(jnp.array([0.0, 1.0])).tolist())
    divergence = distrax.Normal(0.0, 1.0).kl_divergence(distrax.Normal(1.0, 2.0))
    print(float(divergence))
    model = distrax.HMM(
        init_dist=distrax.Categorical(probs=jnp.array([0.5, 0.5])),
        trans_dist=distrax.Categorical(probs=jnp.array([[0.9, 0.1], [0.2, 0.8]])),
        obs_dist=distrax.Normal(jnp.array([0.0, 2.0]), jnp.ones(2)),
    )
    _, _, marginals, likelihood = model.forward_backward(jnp.array([0.1, 1.9, 2.2]))
    print(marginals.tolist(), float(likelihood))


if __name__ == "__main__":
    main()
