"""How good the plans of `debug.propose` are beside eight that are written by hand.

The idea: three programs without a word on shardings go to the search, and the same with
the shardings of eight well-known plans to `debug.plan`, which judges all of them alike.

    python -m tests.benchmarks.mesh_search               # the table of the page
    python -m tests.benchmarks.mesh_search gpt --mesh 64x8 --plans
"""

import argparse
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from attrs import frozen

import verax
import verax.numpy as vnp
from tests.benchmarks.mesh_programs import adam, mesh_of, normed
from verax import lax, nn
from verax.debug import MeshPlan, plan, propose
from verax.sharding import PartitionSpec as P

BOTH: Final = ("data", "model")
HEADS: Final = ("program", "mesh", "best by hand", "step", "proposed", "ratio", "CPU s")

type Specs = Mapping[str, Any]
type Keep = Callable[[str, Any], Any]
"""From the name of an intermediate value, and the value, to the value at its place."""


def nowhere(name: str, x: Any) -> Any:
    """Values that lie where the compiler likes."""
    return x


@frozen
class Hand:
    """A plan by hand: specs of parameters, moments, data and intermediate values.

    `weights` has one for each parameter; `moments` those that differ.
    """

    name: str
    data: Any
    weights: Specs
    moments: Specs
    kept: Specs

    def keep(self, name: str, x: Any) -> Any:
        """A value at its place, if the plan says one."""
        spec = self.kept.get(name)
        return x if spec is None else lax.with_sharding_constraint(x, spec)


@frozen
class Program:
    """A step of a training: its loss, its types, and the plans."""

    loss: Callable[[Keep], Callable[..., Any]]
    weights: Mapping[str, tuple[int, ...]]
    data: tuple[tuple[int, ...], Any]
    hands: tuple[Hand, ...]

    def step(self, keep: Keep) -> Callable[..., Any]:
        """A step of Adam."""
        return adam(self.loss(keep))

    def types(self) -> tuple[Any, ...]:
        """The types of the arguments."""
        half = {
            name: verax.ShapeDtypeStruct(shape, vnp.bfloat16)
            for name, shape in self.weights.items()
        }
        wide = {name: one.update(dtype=vnp.float32) for name, one in half.items()}
        return half, (wide, wide), verax.ShapeDtypeStruct(*self.data)

    def planned(self, hand: Hand, mesh: Any) -> MeshPlan:
        """What a plan by hand takes."""
        weights = {name: hand.weights.get(name, P()) for name in self.weights}
        moments = {name: hand.moments.get(name, weights[name]) for name in weights}
        state = weights, (moments, moments)
        return plan(
            self.step(hand.keep),
            mesh=mesh,
            in_shardings=(*state, hand.data),
            out_shardings=state,
            donate_argnums=(0, 1),
        )(*self.types())

    def proposed(self, mesh: Any) -> Any:
        """What the search proposes."""
        return propose(self.step(nowhere), mesh=mesh, donate_argnums=(0, 1))(
            *self.types()
        )


# -----------------------------------------------------------------------------
# A decoder.


def gpt(
    depth: int, width: int, batch: int, length: int = 2048, words: int = 32768
) -> Program:
    size = 128
    heads = width // size
    layers = {
        **{name: (depth, width, heads, size) for name in "qkv"},
        "o": (depth, heads, size, width),
        "up": (depth, width, 4 * width),
        "down": (depth, 4 * width, width),
    }

    def loss(keep: Keep) -> Callable[..., Any]:
        def block(x: Any, w: Any) -> Any:
            x = keep("x", x)
            y = normed(x)
            q, k, v = [vnp.einsum("bld,dhk->blhk", y, w[name]) for name in "qkv"]
            scores = vnp.einsum("blhk,bmhk->bhlm", q, k) / size**0.5
            seen = vnp.tri(length, dtype=bool)
            weights = nn.softmax(vnp.where(seen, scores, -1e9).astype(vnp.float32))
            mixed = vnp.einsum("bhlm,bmhk->blhk", weights.astype(x.dtype), v)
            x = keep("x", x + vnp.einsum("blhk,hkd->bld", mixed, w["o"]))
            return x + nn.gelu(normed(x) @ w["up"]) @ w["down"], None

        def total(w: Any, tokens: Any) -> Any:
            x = keep("x", w["words"][tokens])
            inner = {name: w[name] for name in layers}
            x, _ = lax.scan(verax.checkpoint(block), x, inner)
            scores = (normed(keep("x", x)) @ w["words"].T).astype(vnp.float32)
            known = vnp.sum(nn.one_hot(tokens, words) * scores, -1)
            return vnp.mean(nn.logsumexp(scores, axis=-1) - known)

        return total

    return Program(
        loss, {**layers, "words": (words, width)}, ((batch, length), vnp.int32), GPT
    )


def split(over: Any, model: Any, words: Any = None) -> Specs:
    """Heads and the inner layer along `model`, the width along `over`."""
    return {
        **{name: P(None, over, model) for name in "qkv"},
        "o": P(None, model, None, over),
        "up": P(None, over, model),
        "down": P(None, model, over),
        "words": P(model if words is None else words, over),
    }


ROWS, COLUMNS = P("data"), P(BOTH)
GPT: Final = (
    Hand("data parallel", COLUMNS, {}, {}, {"x": COLUMNS}),
    Hand("ZeRO-1", COLUMNS, {}, split(BOTH, None), {"x": COLUMNS}),
    Hand("FSDP", COLUMNS, split(BOTH, None), {}, {"x": COLUMNS}),
    Hand("FSDP inside boards", COLUMNS, split("model", None), {}, {"x": COLUMNS}),
    Hand("Megatron", ROWS, split(None, "model"), {}, {"x": ROWS}),
    Hand("Megatron, FSDP", ROWS, split("data", "model"), {}, {"x": ROWS}),
    Hand(
        "Megatron, sequence", ROWS, split(None, "model"), {}, {"x": P("data", "model")}
    ),
    Hand(
        "Megatron, sequence, FSDP",
        ROWS,
        split("data", "model"),
        {},
        {"x": P("data", "model")},
    ),
)

# -----------------------------------------------------------------------------
# A mixture of experts: groups of tokens, each with room for so many in each expert.


def mixture(
    depth: int, width: int, experts: int, groups: int, length: int = 1024
) -> Program:
    room = 2 * length // experts
    layers = {
        "gate": (depth, width, experts),
        "up": (depth, experts, width, 4 * width),
        "down": (depth, experts, 4 * width, width),
    }

    def loss(keep: Keep) -> Callable[..., Any]:
        def block(x: Any, w: Any) -> Any:
            x = keep("x", x)
            y = normed(x)
            chances = nn.softmax((y @ w["gate"]).astype(vnp.float32))
            sent = nn.one_hot(vnp.argmax(chances, -1), experts)
            place = vnp.cumsum(sent, 1) * sent
            table = nn.one_hot(place.astype(vnp.int32) - 1, room, dtype=x.dtype)
            table = table * sent[..., None].astype(x.dtype)
            given = keep("given", vnp.einsum("gtd,gtec->egcd", y, table))
            inner = keep("inner", nn.relu(vnp.einsum("egcd,edf->egcf", given, w["up"])))
            out = keep("given", vnp.einsum("egcf,efd->egcd", inner, w["down"]))
            weight = (chances * sent).sum(-1, keepdims=True).astype(x.dtype)
            return x + weight * vnp.einsum("egcd,gtec->gtd", out, table), None

        def total(w: Any, x: Any) -> Any:
            x, _ = lax.scan(verax.checkpoint(block), keep("x", x), w)
            return vnp.mean(keep("x", x).astype(vnp.float32) ** 2)

        return total

    return Program(loss, layers, ((groups, length, width), vnp.bfloat16), MIXTURE)


def experts_over(axis: Any, width: Any = None, inner: Any = None) -> Specs:
    """Experts along an axis; the width and the inner layer along others."""
    return {
        "gate": P(None, width),
        "up": P(None, axis, width, inner),
        "down": P(None, axis, inner, width),
    }


def routed(data: Any, experts: Any, groups: Any, inner: Any = None) -> Specs:
    """Places of tokens before and after they go to experts."""
    return {
        "x": data,
        "given": P(experts, groups),
        "inner": P(experts, groups, None, inner),
    }


MIXTURE: Final = (
    Hand("data parallel", COLUMNS, {}, {}, {"x": COLUMNS}),
    Hand("FSDP", COLUMNS, experts_over(None, BOTH), {}, {"x": COLUMNS}),
    Hand(
        "experts over both",
        COLUMNS,
        experts_over(BOTH),
        {},
        routed(COLUMNS, BOTH, None),
    ),
    Hand(
        "experts over model",
        COLUMNS,
        experts_over("model"),
        {},
        routed(COLUMNS, "model", "data"),
    ),
    Hand(
        "experts over model, FSDP",
        COLUMNS,
        experts_over("model", "data"),
        {},
        routed(COLUMNS, "model", "data"),
    ),
    Hand(
        "experts over data",
        COLUMNS,
        experts_over("data"),
        {},
        routed(COLUMNS, "data", "model"),
    ),
    Hand(
        "experts over data, tensors over model",
        ROWS,
        experts_over("data", None, "model"),
        {},
        routed(ROWS, "data", None, "model"),
    ),
    Hand(
        "tensors over model, FSDP",
        ROWS,
        experts_over(None, "data", "model"),
        {},
        routed(ROWS, None, "data", "model"),
    ),
)

# -----------------------------------------------------------------------------
# A U-Net: convolutions on the way down and up, joined over the width.

NAMES: Final = ("NHWC", "HWIO", "NHWC")


def unet(width: int, batch: int, size: int = 64, levels: int = 3) -> Program:
    widths = [width * 2**i for i in range(levels + 1)]
    kernels: dict[str, tuple[int, ...]] = {"in": (3, 3, 4, width)}
    for i in range(levels):
        small, large = widths[i], widths[i + 1]
        kernels |= {
            f"same{i}": (3, 3, small, small),
            f"down{i}": (3, 3, small, large),
            f"up{i}": (3, 3, large, small),
            f"join{i}": (3, 3, 2 * small, small),
        }
    kernels["out"] = (3, 3, width, 4)

    def loss(keep: Keep) -> Callable[..., Any]:
        def conv(x: Any, w: Any, stride: int = 1) -> Any:
            y = lax.conv_general_dilated(
                x, w, (stride, stride), "SAME", dimension_numbers=NAMES
            )
            return keep("x", nn.silu(y))

        def total(w: Any, images: Any) -> Any:
            x, skips = conv(images, w["in"]), []
            for i in range(levels):
                x = conv(x, w[f"same{i}"])
                skips.append(x)
                x = conv(x, w[f"down{i}"], 2)
            for i in reversed(range(levels)):
                x = conv(vnp.repeat(vnp.repeat(x, 2, 1), 2, 2), w[f"up{i}"])
                x = conv(vnp.concatenate([x, skips[i]], -1), w[f"join{i}"])
            y = lax.conv_general_dilated(
                x, w["out"], (1, 1), "SAME", dimension_numbers=NAMES
            )
            return vnp.mean((y - images).astype(vnp.float32) ** 2)

        return total

    def specs(inside: Any, outside: Any) -> Specs:
        """Features along axes; those of images, which are few, are whole."""
        return {
            name: P(
                None,
                None,
                None if name == "in" else inside,
                None if name == "out" else outside,
            )
            for name in kernels
        }

    places = P("data", None, None, "model")
    hands = (
        Hand("data parallel", COLUMNS, {}, {}, {"x": COLUMNS}),
        Hand("ZeRO-1", COLUMNS, {}, specs("data", "model"), {"x": COLUMNS}),
        Hand("FSDP", COLUMNS, specs("data", "model"), {}, {"x": COLUMNS}),
        Hand("FSDP inside boards", COLUMNS, specs(None, "model"), {}, {"x": COLUMNS}),
        Hand("ZeRO-1 inside boards", COLUMNS, {}, specs(None, "model"), {"x": COLUMNS}),
        Hand("features over model", ROWS, specs(None, "model"), {}, {"x": places}),
        Hand("features, FSDP", ROWS, specs("data", "model"), {}, {"x": places}),
        Hand("batch over data alone", ROWS, {}, {}, {"x": ROWS}),
    )
    images = (batch, size, size, 4), vnp.bfloat16
    return Program(loss, kernels, images, hands)


# -----------------------------------------------------------------------------
# The table.

CASES: Final[Mapping[str, Mapping[tuple[int, int], Callable[[], Program]]]] = {
    "gpt": {
        (16, 4): lambda: gpt(24, 2048, 256),
        (8, 8): lambda: gpt(24, 2048, 128),
        (64, 8): lambda: gpt(48, 4096, 1024),
    },
    "mixture": {
        (16, 4): lambda: mixture(8, 1024, 64, 256),
        (8, 8): lambda: mixture(8, 2048, 64, 64),
        (64, 8): lambda: mixture(8, 1024, 512, 512),
    },
    "unet": {
        (16, 4): lambda: unet(128, 1024),
        (8, 8): lambda: unet(256, 256),
        (64, 8): lambda: unet(256, 2048),
    },
}


def compared(name: str, sizes: tuple[int, int], shown: bool) -> tuple[str, ...]:
    """The row of a program on a mesh."""
    program, mesh = CASES[name][sizes](), mesh_of(*sizes)
    plans = [(hand.name, program.planned(hand, mesh)) for hand in program.hands]
    if shown:
        for title, one in plans:
            print(f"{1e3 * one.time:10.2f} ms {one.memory.peak / 1e9:7.1f} GB  {title}")
    best, known = min(plans, key=lambda pair: (not pair[1].fits, pair[1].time))
    start = time.process_time()
    proposal = program.proposed(mesh)
    seconds = time.process_time() - start
    if shown:
        print(proposal)
    return (
        name,
        f"{sizes[0]} x {sizes[1]}",
        best,
        f"{1e3 * known.time:,.1f} ms",
        f"{1e3 * proposal.plan.time:,.1f} ms",
        f"{proposal.plan.time / known.time:.2f}",
        f"{seconds:.0f}",
    )


def line(cells: tuple[str, ...]) -> str:
    """A row of a table."""
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(CASES))
    parser.add_argument("--mesh", default="16x4,8x8,64x8")
    parser.add_argument("--plans", action="store_true", help="print all plans")
    options = parser.parse_args()
    print(line(HEADS))
    print(line(("---",) * len(HEADS)))
    for name in options.names:
        for text in options.mesh.split(","):
            data, model = map(int, text.split("x"))
            print(line(compared(name, (data, model), options.plans)), flush=True)


if __name__ == "__main__":
    main()
