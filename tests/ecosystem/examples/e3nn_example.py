"""e3nn-jax: tensor products and spherical harmonics, equivariant under a rotation."""

import e3nn_jax as e3nn
import jax
import jax.numpy as jnp


@jax.jit
def product(x):
    return e3nn.tensor_product(x, x).filter("0e + 1o").array


def main() -> None:
    key = jax.random.key(0)
    x = e3nn.normal("2x0e + 1x1o", key)
    print(e3nn.tensor_product(x, x).irreps)
    print(product(x).tolist())
    direction = jnp.array([1.0, 2.0, 0.5])
    print(e3nn.spherical_harmonics("1o + 2e", direction, True).array.tolist())
    turned = x.transform_by_angles(0.1, 0.2, 0.3)
    print(jnp.abs(product(turned)[:4] - product(x)[:4]).max() < 1e-4)
    print(jax.grad(lambda a: product(e3nn.IrrepsArray(x.irreps, a)).sum())(x.array))


if __name__ == "__main__":
    main()
