"""einops: rearrange, reduce, repeat, pack and einsum, eagerly and under jit."""

import einops
import jax
import jax.numpy as jnp


@jax.jit
def patches(images):
    rows = einops.rearrange(images, "b (h p) (w q) c -> b (h w) (p q c)", p=2, q=2)
    return einops.reduce(rows, "b n d -> b d", "mean")


def main() -> None:
    images = jnp.arange(2 * 4 * 4 * 3.0).reshape(2, 4, 4, 3)
    print(patches(images).tolist())
    print(jax.grad(lambda x: (patches(x) ** 2).sum())(images).sum().tolist())
    print(einops.rearrange(jnp.arange(6).reshape(2, 3), "a b -> b a").tolist())
    print(einops.repeat(jnp.arange(3), "a -> a b", b=2).tolist())
    packed, shapes = einops.pack([jnp.ones((2, 3)), jnp.ones((2, 4, 5))], "a *")
    print(packed.shape, [part.shape for part in einops.unpack(packed, shapes, "a *")])
    print(einops.einsum(images, images, "b h w c, b h w d -> c d").tolist())


if __name__ == "__main__":
    main()
