"""tinygp: likelihoods by a dense and a quasiseparable kernel, with a gradient."""

import jax
import jax.numpy as jnp
import tinygp


def main() -> None:
    times = jnp.linspace(0, 1, 10)
    observed = jnp.sin(4 * times)

    def dense(scale):
        kernel = tinygp.kernels.Matern32(scale)
        return tinygp.GaussianProcess(kernel, times, diag=0.1)

    @jax.jit
    @jax.value_and_grad
    def likelihood(scale):
        kernel = tinygp.kernels.quasisep.Matern32(scale=scale)
        process = tinygp.GaussianProcess(kernel, times, diag=0.1)
        return process.log_probability(observed)

    print(float(jax.jit(lambda s: dense(s).log_probability(observed))(0.3)))
    print([float(part) for part in likelihood(0.3)])
    _, conditioned = dense(0.3).condition(observed, jnp.array([0.25, 0.75]))
    print(conditioned.loc.tolist(), conditioned.variance.tolist())
    print(dense(0.3).sample(jax.random.key(0)).tolist())


if __name__ == "__main__":
    main()
