"""Diffrax: an adaptive solve and its gradient, a stiff system, an SDE."""

import diffrax
import jax
import jax.numpy as jnp


@jax.jit
def decay(rate):
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, y, rate: -rate * y),
        diffrax.Tsit5(),
        t0=0,
        t1=1,
        dt0=0.1,
        y0=jnp.array([1.0, 2.0]),
        args=rate,
        stepsize_controller=diffrax.PIDController(rtol=1e-5, atol=1e-6),
        saveat=diffrax.SaveAt(ts=jnp.linspace(0, 1, 3)),
    )
    return solution.ys


def stiff() -> jax.Array:
    def field(t, y, args):
        return jnp.array([-50.0 * (y[0] - jnp.cos(t)), y[0] - y[1]])

    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(field),
        diffrax.Kvaerno3(),
        t0=0,
        t1=1,
        dt0=0.01,
        y0=jnp.array([0.0, 1.0]),
        stepsize_controller=diffrax.PIDController(rtol=1e-4, atol=1e-5),
    )
    return solution.ys


def noisy() -> jax.Array:
    brownian = diffrax.VirtualBrownianTree(
        0.0, 1.0, tol=1e-2, shape=(), key=jax.random.key(0)
    )
    terms = diffrax.MultiTerm(
        diffrax.ODETerm(lambda t, y, args: -y),
        diffrax.ControlTerm(lambda t, y, args: 0.1, brownian),
    )
    return diffrax.diffeqsolve(terms, diffrax.Euler(), 0, 1, 0.05, 1.0).ys


def main() -> None:
    print(decay(1.0).tolist())
    print(float(jax.grad(lambda rate: decay(rate).sum())(1.0)))
    print(stiff().tolist())
    print(noisy().tolist())


if __name__ == "__main__":
    main()
