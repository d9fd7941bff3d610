"""NumPyro: a linear regression by NUTS and by variational inference."""

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO, autoguide


def model(x, y=None):
    intercept = numpyro.sample("intercept", dist.Normal(0, 1))
    slope = numpyro.sample("slope", dist.Normal(0, 1))
    noise = numpyro.sample("noise", dist.HalfNormal(1))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Normal(intercept + slope * x, noise), obs=y)


def main() -> None:
    x = jnp.linspace(-1, 1, 40)
    y = 0.5 + 2 * x + 0.1 * jax.random.normal(jax.random.key(0), (40,))
    chain = MCMC(NUTS(model), num_warmup=100, num_samples=200, progress_bar=False)
    chain.run(jax.random.key(1), x, y)
    samples = chain.get_samples()
    # Chains part after rounding differences: their means agree to a decimal.
    print({name: round(float(samples[name].mean()), 1) for name in sorted(samples)})
    print(Predictive(model, samples)(jax.random.key(3), x)["y"].shape)
    guide = autoguide.AutoNormal(model)
    svi = SVI(model, guide, numpyro.optim.Adam(0.05), Trace_ELBO())
    result = svi.run(jax.random.key(2), 300, x, y, progress_bar=False)
    medians = guide.median(result.params)
    print({name: round(float(medians[name]), 2) for name in sorted(medians)})


if __name__ == "__main__":
    main()
