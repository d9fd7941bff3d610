"""GPJax: the marginal likelihood of a Gaussian process, fitted and predicted."""

import gpjax
import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)


def main() -> None:
    inputs = jnp.linspace(0, 1, 12)[:, None]
    data = gpjax.Dataset(inputs, jnp.sin(6 * inputs))
    prior = gpjax.gps.Prior(
        mean_function=gpjax.mean_functions.Zero(), kernel=gpjax.kernels.RBF()
    )
    posterior = prior * gpjax.likelihoods.Gaussian(num_datapoints=data.n)
    print(float(gpjax.objectives.conjugate_mll(posterior, data)))
    predictive = posterior.predict(jnp.array([[0.25], [0.5]]), train_data=data)
    print(predictive.mean.tolist())
    _, history = gpjax.fit_scipy(
        model=posterior,
        objective=lambda p, d: -gpjax.objectives.conjugate_mll(p, d),
        train_data=data,
        verbose=False,
    )
    print(round(float(history[-1]), 2))


if __name__ == "__main__":
    main()
