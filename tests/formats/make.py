"""Makes files of today's formats, where there are none yet: they are kept for ever.

One idea: a folder for each format and version; what is there is never written again, so
that a later verax is held to the very bytes that an earlier one wrote::

    python -m tests.formats.make      # after the version of a format was raised
"""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any, Final

import numpy as np

import verax
import verax.numpy as vnp
from verax import export, ir, lax, random
from verax.api.export.export import FRAME as EXPORT
from verax.backend.programs.serialize import FRAME as PROGRAM
from verax.backend.xla.disk_cache import FORMAT as CACHE, Entry, Folder
from verax.experimental import checkpoint
from verax.experimental.checkpoint.leaves import VERSION as CHECKPOINT
from verax.ir.forms.saving import FRAME as JAXPR
from verax.ops.table import PRIMITIVES
from verax.rules.rows.row import Row
from verax.verify.cases.case import traced

HOME: Final = Path(__file__).parents[1] / "goldens" / "formats"
TABLE: Final = np.arange(12, dtype=np.float32).reshape(4, 3) / 8
WEIGHTS: Final = np.linspace(-1, 1, 9, dtype=np.float32).reshape(3, 3)
X: Final = np.array([0.5, -1.0, 2.0], np.float32)
WORDS: Final = np.array([7, 42], np.uint32)
CACHE_KEY: Final = "0" * 64
CACHE_BODY: Final = b"the bytes of a program"


def plain(x: Any) -> Any:
    """A program without arrays of its own: a loop, a choice, a call."""
    total = lax.fori_loop(0, 3, lambda i, c: c * 0.5 + vnp.sin(x), x)
    return lax.cond(x[0] > 0, lambda v: verax.jit(vnp.cumsum)(v), vnp.negative, total)


def full(x: Any, words: Any) -> Any:
    """A program with captured arrays, keys, a scan, and a narrow dtype."""
    noise = random.uniform(random.wrap_key_data(words), (3,))

    def step(carry: Any, row: Any) -> Any:
        return vnp.tanh(carry @ WEIGHTS) + row, carry.sum()

    carry, sums = lax.scan(step, plain(x), TABLE)
    return carry, sums.astype(vnp.bfloat16), noise


def tree() -> dict[str, Any]:
    """The values of the checkpoint."""
    return {
        "weights": [vnp.asarray(WEIGHTS), vnp.asarray(X).astype(vnp.bfloat16)],
        "host": TABLE.copy(),
        "key": random.key(3),
        "step": 7,
        "rate": 0.25,
        "name": "a run",
        "none": None,
    }


def write_jaxprs(folder: Path) -> None:
    """A program in each form, and one of every row that draws its own calls."""
    program = verax.make_jaxpr(full)(X, WORDS)
    (folder / "full.bin").write_bytes(ir.dumps(program))
    (folder / "full.json").write_text(ir.to_json(program, indent=1))
    (folder / "plain.txt").write_text(f"{verax.make_jaxpr(plain)(X)}\n")
    lines = []
    for name in sorted(PRIMITIVES):
        row: Row[Any] = PRIMITIVES[name]
        if row.draw is not None:
            try:
                text = ir.to_json(traced(row, row.draw(Random(0))))
            except ir.Unsavable:
                continue
            lines.append(text + "\n")
    (folder / "rows.jsonl").write_text("".join(lines))


def write_exports(folder: Path) -> None:
    """A function with its derivative, and one of symbolic shapes."""
    exported = export.export(verax.jit(full))(X, WORDS)
    (folder / "full.bin").write_bytes(exported.serialize(vjp_order=1))
    shape = export.symbolic_shape("n, 3")
    rows = verax.ShapeDtypeStruct(shape, np.float32)
    both = export.export(verax.jit(scaled), platforms=("cpu", "cuda"))(rows)
    (folder / "symbolic.bin").write_bytes(both.serialize(vjp_order=1))


def scaled(x: Any) -> Any:
    """Rows, divided by their sums."""
    return x / x.sum(axis=1, keepdims=True)


def write_checkpoint(folder: Path) -> None:
    """A checkpoint of arrays, a key and plain values."""
    checkpoint.save(folder / "tree", tree())


def write_program(folder: Path) -> None:
    """A compiled program, which only its own jaxlib and processor can run."""
    compiled = verax.jit(plain).lower(X).compile()
    (folder / "plain.bin").write_bytes(compiled.serialize())


def write_cache(folder: Path) -> None:
    """An entry of the cache on disk."""
    assert not Entry(Folder(folder), CACHE_KEY).write(CACHE_BODY)


def expected() -> dict[str, list[Any]]:
    """What the functions return: numbers as JSON has them."""
    out = verax.jit(full)(X, WORDS)
    return {
        "full": [np.asarray(x, np.float64).tolist() for x in out],
        "plain": np.asarray(plain(X), np.float64).tolist(),
        "scaled": np.asarray(scaled(TABLE + 1), np.float64).tolist(),
    }


WRITERS: Final[Mapping[str, Callable[[Path], None]]] = {
    f"jaxpr-{JAXPR.version}": write_jaxprs,
    f"export-{EXPORT.version}": write_exports,
    f"checkpoint-{CHECKPOINT}": write_checkpoint,
    f"program-{PROGRAM.version}": write_program,
    f"cache-{CACHE.rpartition(' ')[2]}": write_cache,
}
"""The formats of today, by the folder that their files are kept in."""


def make(home: Path = HOME) -> list[str]:
    """Write the folders that are not there; the names of those."""
    written = []
    for name, write in WRITERS.items():
        folder = home / name
        if folder.exists():
            continue
        folder.mkdir(parents=True)
        try:
            write(folder)
            (folder / "expected.json").write_text(json.dumps(expected()) + "\n")
        except BaseException:
            shutil.rmtree(folder)
            raise
        written.append(name)
    return written


if __name__ == "__main__":
    print(*make() or ["nothing to write"], sep="\n")
