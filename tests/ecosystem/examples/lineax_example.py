"""Lineax: one linear system, five solvers, a least-squares problem and a gradient."""

import jax
import jax.numpy as jnp
import lineax


def main() -> None:
    matrix = jnp.array([[3.0, 1.0], [1.0, 2.0]])
    vector = jnp.array([1.0, 2.0])
    operator = lineax.MatrixLinearOperator(matrix, lineax.positive_semidefinite_tag)
    for solver in (
        lineax.AutoLinearSolver(well_posed=True),
        lineax.Cholesky(),
        lineax.CG(1e-6, 1e-6),
        lineax.GMRES(1e-6, 1e-6),
        lineax.SVD(),
    ):
        solution = lineax.linear_solve(operator, vector, solver)
        print(type(solver).__name__, solution.value.tolist())
    tall = lineax.MatrixLinearOperator(jnp.arange(6.0).reshape(3, 2))
    fitted = lineax.linear_solve(tall, jnp.ones(3), lineax.QR())
    print(fitted.value.tolist())

    @jax.jit
    @jax.grad
    def gradient(matrix):
        operator = lineax.MatrixLinearOperator(matrix)
        return lineax.linear_solve(operator, vector).value.sum()

    print(gradient(matrix).tolist())
    jacobian = lineax.JacobianLinearOperator(lambda y, args: y**2, vector)
    print(lineax.linear_solve(jacobian, vector).value.tolist())


if __name__ == "__main__":
    main()
