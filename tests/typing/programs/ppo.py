"""Proximal policy optimisation of a cart on a line, environments under vmap."""

from typing import NamedTuple

import verax
import verax.numpy as vnp
from verax import Array, lax, nn, random

type Layers = tuple[Array, Array]
type Params = dict[str, Layers]


class Cart(NamedTuple):
    place: Array
    speed: Array
    time: Array


class Moment(NamedTuple):
    """What one step of one environment leaves for learning."""

    seen: Array
    action: Array
    log_prob: Array
    value: Array
    reward: Array
    done: Array


def fresh(key: Array) -> Cart:
    place, speed = random.uniform(key, (2,), minval=-1.0, maxval=1.0)
    return Cart(place, speed, vnp.array(0))


def moved(cart: Cart, action: Array, key: Array) -> tuple[Cart, Array, Array]:
    speed = 0.95 * cart.speed + 0.2 * (action - 1)
    place = cart.place + 0.2 * speed
    reward = -(place**2) - 0.1 * speed**2
    done = (vnp.abs(place) > 3.0) | (cart.time >= 50)
    going = Cart(place, speed, cart.time + 1)
    cart = lax.cond(
        done, lambda going, key: fresh(key), lambda going, key: going, going, key
    )
    return cart, reward, done


def seen(cart: Cart) -> Array:
    return vnp.stack([cart.place, cart.speed])


def init(key: Array, hidden: int = 32) -> Params:
    first, second, third = random.split(key, 3)
    glorot = nn.initializers.glorot_uniform()
    return {
        "body": (glorot(first, (2, hidden)), vnp.zeros(hidden)),
        "policy": (0.01 * glorot(second, (hidden, 3)), vnp.zeros(3)),
        "value": (glorot(third, (hidden, 1)), vnp.zeros(1)),
    }


def dense(layer: Layers, x: Array) -> Array:
    kernel, bias = layer
    return x @ kernel + bias


def heads(params: Params, x: Array) -> tuple[Array, Array]:
    hidden = nn.tanh(dense(params["body"], x))
    return nn.log_softmax(dense(params["policy"], hidden)), dense(
        params["value"], hidden
    )[..., 0]


def rollout(params: Params, carts: Cart, key: Array) -> tuple[Cart, Moment]:
    def step(carts: Cart, key: Array) -> tuple[Cart, Moment]:
        for_action, for_cart = random.split(key)
        x = verax.vmap(seen)(carts)
        log_probs, values = heads(params, x)
        actions = random.categorical(for_action, log_probs)
        keys = random.split(for_cart, len(actions))
        carts, rewards, done = verax.vmap(moved)(carts, actions, keys)
        chosen = vnp.take_along_axis(log_probs, actions[:, None], axis=-1)[:, 0]
        return carts, Moment(x, actions, chosen, values, rewards, done)

    return lax.scan(step, carts, random.split(key, 64))


def advantages(moments: Moment, last: Array) -> Array:
    def step(
        carry: tuple[Array, Array], at: Moment
    ) -> tuple[tuple[Array, Array], Array]:
        ahead, value = carry
        going = 1.0 - at.done
        delta = at.reward + 0.97 * value * going - at.value
        ahead = delta + 0.97 * 0.95 * going * ahead
        return (ahead, at.value), ahead

    _, out = lax.scan(step, (vnp.zeros_like(last), last), moments, reverse=True)
    return out


def loss(params: Params, moments: Moment, ahead: Array) -> tuple[Array, Array]:
    log_probs, values = heads(params, moments.seen)
    chosen = vnp.take_along_axis(log_probs, moments.action[..., None], axis=-1)[..., 0]
    ratio = vnp.exp(chosen - moments.log_prob)
    norm = (ahead - ahead.mean()) / (ahead.std() + 1e-8)
    policy = -vnp.minimum(ratio * norm, vnp.clip(ratio, 0.8, 1.2) * norm).mean()
    critic = ((values - moments.value - ahead) ** 2).mean()
    entropy = -(vnp.exp(log_probs) * log_probs).sum(-1).mean()
    return policy + 0.2 * critic - 0.003 * entropy, entropy


def descended(p: Array, g: Array) -> Array:
    return p - 0.3 * g


@verax.jit
def iteration(params: Params, carts: Cart, key: Array) -> tuple[Params, Cart, Array]:
    carts, moments = rollout(params, carts, key)
    _, last = heads(params, verax.vmap(seen)(carts))
    ahead = advantages(moments, last)

    def epoch(i: Array, params: Params) -> Params:
        gradient, _ = verax.grad(loss, has_aux=True)(params, moments, ahead)
        return verax.tree.map(descended, params, gradient)

    return lax.fori_loop(0, 8, epoch, params), carts, moments.reward.mean()


def main() -> float:
    """The mean reward of the last iterations; 0 is the highest."""
    key, for_params, for_carts = random.split(random.key(0), 3)
    params = init(for_params)
    carts = verax.vmap(fresh)(random.split(for_carts, 32))
    rewards: list[Array] = []
    for own in random.split(key, 40):
        params, carts, reward = iteration(params, carts, own)
        rewards.append(reward)
    return float(vnp.stack(rewards[-5:]).mean())
