"""Equinox: a model that is a pytree, trained; layers with state; errors at run time."""

import equinox as eqx
import jax
import jax.numpy as jnp


def train(key: jax.Array) -> None:
    model = eqx.nn.MLP(2, 1, 8, 2, key=key)
    inputs = jax.random.normal(jax.random.key(1), (16, 2))
    targets = inputs.sum(1, keepdims=True)

    @eqx.filter_jit
    def step(model, inputs, targets):
        @eqx.filter_value_and_grad
        def loss(model):
            return ((jax.vmap(model)(inputs) - targets) ** 2).mean()

        value, gradient = loss(model)
        updates = jax.tree.map(lambda g: -0.05 * g, gradient)
        return eqx.apply_updates(model, updates), value

    for number in range(40):
        model, value = step(model, inputs, targets)
        if number % 10 == 0:
            print("loss", float(value))
    eqx.tree_pprint(model.layers[0])


def main() -> None:
    train(jax.random.key(0))
    norm, state = eqx.nn.make_with_state(eqx.nn.BatchNorm)(
        4, axis_name="batch", mode="batch"
    )
    batched = jax.vmap(norm, axis_name="batch", in_axes=(0, None), out_axes=(0, None))
    out, state = batched(jnp.arange(12.0).reshape(3, 4), state)
    print(out.tolist())
    print(
        eqx.filter_eval_shape(eqx.nn.Linear, 2, 3, key=jax.random.key(0)).weight.shape
    )

    @eqx.filter_jit
    def checked(x):
        return eqx.error_if(x, x < 0, "x must not be negative")

    print(float(checked(jnp.array(1.0))))
    try:
        checked(jnp.array(-1.0))
    except RuntimeError as error:
        print("x must not be negative" in str(error))


if __name__ == "__main__":
    main()
