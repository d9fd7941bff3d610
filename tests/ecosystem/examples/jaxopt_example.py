"""JAXopt: L-BFGS, a projected gradient, and a derivative through the solution."""

import jax
import jax.numpy as jnp
import jaxopt


def main() -> None:
    def distance(x, centre):
        return jnp.sum((x - centre) ** 2)

    centre = jnp.arange(3.0)
    solver = jaxopt.LBFGS(distance, maxiter=20)
    print(solver.run(jnp.zeros(3), centre).params.tolist())
    projected = jaxopt.ProjectedGradient(
        distance, jaxopt.projection.projection_simplex, maxiter=50
    )
    print(projected.run(jnp.ones(3) / 3, None, centre).params.tolist())
    inputs = jax.random.normal(jax.random.key(0), (8, 3))

    def ridge(params, penalty):
        residual = inputs @ params - inputs.sum(1)
        return jnp.mean(residual**2) + penalty * jnp.sum(params**2)

    def fitted(penalty):
        return jaxopt.GradientDescent(ridge, maxiter=200).run(jnp.zeros(3), penalty)

    print(fitted(0.1).params.tolist())
    print(jax.jacobian(lambda penalty: fitted(penalty).params)(0.1).tolist())


if __name__ == "__main__":
    main()
