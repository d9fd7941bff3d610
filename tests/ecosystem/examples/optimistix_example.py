"""Optimistix: roots, minima, least squares and fixed points, with a derivative."""

import jax
import jax.numpy as jnp
import optimistix


def square_root(value):
    solver = optimistix.Newton(1e-6, 1e-6)
    start = jnp.array(1.0)
    return optimistix.root_find(lambda y, a: y**2 - a, solver, start, value).value


def main() -> None:
    print(float(square_root(2.0)), float(jax.grad(square_root)(2.0)))
    minimum = optimistix.minimise(
        lambda y, a: ((y - a) ** 2).sum(),
        optimistix.BFGS(1e-6, 1e-6),
        jnp.zeros(3),
        jnp.arange(3.0),
    )
    print(minimum.value.tolist())
    times = jnp.linspace(0.0, 1.0, 8)
    observed = 2.0 * jnp.exp(-1.5 * times)
    fitted = optimistix.least_squares(
        lambda y, args: y[0] * jnp.exp(-y[1] * times) - observed,
        optimistix.LevenbergMarquardt(1e-5, 1e-5),
        jnp.array([1.0, 1.0]),
    )
    print(fitted.value.tolist())
    fixed = optimistix.fixed_point(
        lambda y, args: jnp.cos(y),
        optimistix.FixedPointIteration(1e-6, 1e-6),
        jnp.array(1.0),
    )
    print(float(fixed.value))


if __name__ == "__main__":
    main()
