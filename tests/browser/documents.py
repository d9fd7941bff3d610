"""Documents made by hand for tests of the page, small and large.

A `Rows` collects one stage as the page reads it; `small` is a program of three stages
with everything that the page shows, `large` has many rows::

    render(small())
"""

from collections.abc import Sequence

type Json = dict[str, object]

EQUATION, INPUT, CONSTANT, OUTPUT, HEAD = range(5)
SAME, NEW, CHANGED = range(3)


class Rows:
    """The rows of one stage, in columns."""

    def __init__(self, name: str, parent: int | None, kind: str = "jaxpr") -> None:
        self.name, self.parent, self.kind = name, parent, kind
        self.strings: dict[str, int] = {"": 0}
        self.notes: dict[str, str] = {}
        self.sizes: dict[str, int] = {}
        self.gone: list[int] = []
        self.peak: Json | None = None
        columns = "op left right depth inside kind uses from file line scope flops"
        self.columns: dict[str, list[object]] = {
            column: []
            for column in (*columns.split(), "bytes", "live", "time", "change")
        }

    def add(
        self,
        op: str,
        left: str = "",
        right: str = "",
        *,
        inside: int = -1,
        kind: int = EQUATION,
        uses: Sequence[int] = (),
        made: Sequence[int] = (),
        line: int | None = None,
        scope: str = "loss",
        flops: int | None = None,
        nbytes: int | None = None,
        live: int | None = None,
        time: float | None = None,
        change: int = SAME,
        note: str = "",
        size: int = 0,
    ) -> int:
        """One row; its number."""
        row = len(self.columns["op"])
        depths = self.columns["depth"]
        depth = 0 if inside < 0 else int(str(depths[inside])) + 1
        values: dict[str, object] = {
            "op": self.interned(op),
            "left": self.interned(left),
            "right": self.interned(right),
            "depth": depth,
            "inside": inside,
            "kind": kind,
            "uses": list(uses),
            "from": list(made),
            "file": -1 if line is None else 0,
            "line": line or 0,
            "scope": self.interned(scope),
            "flops": flops,
            "bytes": nbytes,
            "live": live,
            "time": time,
            "change": change,
        }
        for column, value in values.items():
            self.columns[column].append(value)
        if note:
            self.notes[str(row)] = note
        if size:
            self.sizes[str(row)] = size
        return row

    def interned(self, text: str) -> int:
        return self.strings.setdefault(text, len(self.strings))

    def stage(self) -> Json:
        """The stage as the page reads it."""
        flops = sum(int(str(f)) for f in self.columns["flops"] if f is not None)
        return {
            "name": self.name,
            "kind": self.kind,
            "title": f"{self.name} of loss",
            "parent": self.parent,
            "seconds": 0.0012,
            "strings": list(self.strings),
            "rows": {**self.columns, "notes": self.notes, "sizes": self.sizes},
            "gone": self.gone,
            "peak": self.peak,
            "totals": {
                "flops": flops,
                "bytes": 4096,
                "equations": self.columns["kind"].count(EQUATION),
            },
        }


SOURCE = (
    "def loss(w, x):",
    "    # the mean of squares, <b>not</b> bold",
    "    h = jnp.tanh(x @ w)",
    "    s = lax.scan(step, 0.0, h)",
    '    return jnp.mean(s ** 2) + len("</script>")',
)


def document(stages: list[Rows], **more: object) -> Json:
    return {
        "format": 1,
        "title": "loss",
        "made": {"verax": "0.1.0", "jaxlib": "0.12.0", "device": "cpu"},
        "files": [
            {"name": "model.py", "path": "src/model.py", "first": 10, "lines": SOURCE}
        ],
        "stages": [stage.stage() for stage in stages],
        "story": None,
        "profile": None,
        **more,
    }


def traced() -> Rows:
    """Eleven rows, with a scan whose body is rows 5 to 8."""
    rows = Rows("trace", None)
    rows.add("", "a:f32[8,8]", kind=INPUT, live=512, note="donated")
    rows.add("", "b:f32[4,8]", kind=INPUT, live=640)
    rows.add(
        "dot_general",
        "c:f32[4,8]",
        "[dimension_numbers=(((1,), (0,)), ((), ()))] b a",
        uses=(1, 0),
        line=12,
        flops=512,
        nbytes=768,
        live=768,
        time=2e-6,
    )
    rows.add("tanh", "d:f32[4,8]", "c", uses=(2,), line=12, flops=32, live=900)
    scan = rows.add(
        "scan",
        "e:f32[] f:f32[4]",
        "[length=4] 0.0:f32[] d",
        uses=(3,),
        line=13,
        flops=64,
        live=800,
    )
    scope = "loss/step"
    for name in ("g:f32[]", "h:f32[8]"):
        rows.add("", name, kind=INPUT, inside=scan, scope=scope)
    total = rows.add(
        "reduce_sum",
        "i:f32[]",
        "[axes=(0,)] h",
        inside=scan,
        uses=(6,),
        line=13,
        scope=scope,
        flops=32,
    )
    rows.add("return", "", "i", kind=OUTPUT, inside=scan, uses=(total,), scope=scope)
    rows.add(
        "integer_pow", "j:f32[4]", "[y=2] f", uses=(scan,), line=14, flops=4, live=700
    )
    rows.add("return", "", "j", kind=OUTPUT, uses=(9,), live=700)
    rows.peak = {"bytes": 900, "row": 3, "holders": [[0, 256], [3, 128], [2, 128]]}
    return rows


def differentiated() -> Rows:
    """What jvp made of it: tanh became two rows, the integer power is changed."""
    rows = Rows("jvp", 0)
    rows.add("", "a:f32[8,8]", kind=INPUT, made=(0,), live=512)
    rows.add("", "b:f32[4,8]", kind=INPUT, made=(1,), live=640)
    rows.add(
        "dot_general", "c:f32[4,8]", "b a", uses=(1, 0), made=(2,), line=12, flops=512
    )
    rows.add("tanh", "d:f32[4,8]", "c", uses=(2,), made=(3,), line=12, flops=32)
    rows.add(
        "mul",
        "k:f32[4,8]",
        "d d",
        uses=(3,),
        made=(3,),
        line=12,
        flops=32,
        scope="loss · jvp",
        change=NEW,
    )
    rows.add(
        "integer_pow",
        "j:f32[4]",
        "[y=3] k",
        uses=(4,),
        made=(9,),
        line=14,
        flops=8,
        change=CHANGED,
    )
    rows.add("return", "", "j", kind=OUTPUT, uses=(5,), made=(10,))
    rows.gone = [4, 5, 6, 7, 8]
    return rows


def optimised() -> Rows:
    """What XLA made of that: one fusion."""
    rows = Rows("hlo", 1, "hlo")
    rows.add("parameter", "%Arg_0.1 = f32[8,8]{1,0}", "(0)", kind=INPUT, made=(0,))
    rows.add(
        "fusion",
        "%fusion.3 = f32[4]{0}",
        "(%Arg_0.1), kind=kLoop",
        uses=(0,),
        made=(3, 4, 5),
        line=12,
    )
    return rows


def small(story: bool = False) -> Json:
    """Three stages of a small program."""
    told = {
        "kind": "nan",
        "title": "where the NaN came from",
        "rows": [[0, 2], [0, 3], [1, 5]],
        "text": [
            "the product overflows",
            "its tanh is NaN",
            "and the loss with it",
            "NaN first at model.py:12",
        ],
    }
    stages = [traced(), differentiated(), optimised()]
    return document(stages, story=told if story else None)


def measured(
    op: str, bins: Sequence[int], first: int = 120, **more: object
) -> dict[str, object]:
    """A value of a run, as the page reads it."""
    return {
        "op": op,
        "type": "f32[4,8]",
        "back": False,
        "runs": 1,
        "least": -2.5,
        "greatest": 3.5,
        "mean": 0.25,
        "std": 1.5,
        "zeros": 0.0,
        "nans": 0,
        "infinite": 0,
        "first": first,
        "bins": list(bins),
        "notes": "",
        "courses": [],
        **more,
    }


def watched() -> Json:
    """A program of six named arguments, with costs by line and the values of a run."""
    trace = Rows("trace", None)
    names = ["x", *(f"params['layers'][{i}]['w']" for i in range(5))]
    for number, name in enumerate(names):
        size = 1000 * (number + 1)
        trace.add("", f"{'abcdef'[number]}:f32[8,8]", name, kind=INPUT, size=size)
    trace.add("dot_general", "g:f32[4,8]", "a b", uses=(0, 1), line=12, flops=512)
    trace.add("tanh", "h:f32[4,8]", "g", uses=(6,), line=12, flops=32)
    trace.add("log", "i:f32[4,8]", "h", uses=(7,), line=14, flops=32)
    trace.add("return", "", "(i)", kind=OUTPUT, uses=(8,))
    trace.peak = {"bytes": 30000, "row": 7, "holders": [[5, 6000], [7, 128]]}
    later = Rows("jvp", 0)
    for number, name in enumerate(names):
        left = f"{'abcdef'[number]}:f32[8,8]"
        later.add("", left, name, kind=INPUT, made=(number,))
    for number, op in enumerate(("dot_general", "tanh", "log")):
        row, line = 6 + number, (12, 12, 14)[number]
        later.add(op, f"r{row}:f32[4,8]", uses=(row - 1,), made=(row,), line=line)
    wave = [1.0, 3.0, None, 2.0]
    course = {"loop": "model.py:13 (loss)", "at": [0, 1, 2, 3], "nans": [0, 0, 4, 0]}
    course |= {"least": wave, "greatest": wave, "mean": wave, "std": wave}
    wrong = {"nans": 16, "notes": "16 NaN", "courses": [course], "zeros": 0.25}
    values = [
        measured("tanh", [10, 300, 690]),
        measured("log", [250, *[0] * 126, 500, *[0] * 127, 250], 0, **wrong),
    ]
    columns = {"file": [0, 0, 0], "line": [12, 12, 14], "backward": [0, 1, 0]}
    columns |= {"flops": [600, 1200, 200], "bytes": [10, 20, 3], "known": [1, 1, 0]}
    return document(
        [trace, later],
        costs={"flops": 2000, "bytes": 33, "lines": columns},
        watch={
            "stage": 1,
            "every": False,
            "rows": {"7": [0], "8": [1]},
            "values": values,
        },
    )


def lossy() -> Json:
    """The program of `watched` beside a shadow: one line loses digits."""
    facts = {"back": False, "of": 7.2, "error": 3e-3, "decisions": 0}
    good = {"op": "tanh", "runs": 1, "lost": 0.01, "own": 6e-8, "cancels": 0}
    bad = {"op": "log", "runs": 1, "lost": 4.6, "own": 1e-7, "cancels": 4.5}
    why = {"reason": "x - y with x nearly y", "remedy": "log1p(x)", "alarm": True}
    none = {"reason": "", "remedy": "", "alarm": False}
    lines = [
        {"file": 0, "line": 14, **facts, "lost": 4.6, **why},
        {"file": 0, "line": 12, **facts, "lost": 0.0, **none},
    ]
    digits = {
        "stage": 1,
        "rows": {"7": [0], "8": [1]},
        "values": [{**facts, **good}, {**facts, **bad}],
        "lines": lines,
    }
    return {**watched(), "watch": None, "digits": digits}


def talking() -> Json:
    """A program over eight devices, which send each other two things."""
    all_reduce = {"kind": "all-reduce", "axes": "data", "devices": 4, "known": True}
    gather = {"kind": "all-gather", "axes": "model", "devices": 2, "known": False}
    talks = [
        {"file": 0, "line": 12, "rows": [1], "bytes": 512, "times": 1, "sent": 768.0}
        | {**all_reduce, "back": True, "op": "dot_general"},
        {"file": -1, "line": 0, "rows": [], "bytes": 64, "times": 4, "sent": 256.0}
        | {**gather, "back": False, "op": ""},
    ]
    memory = dict(zip(("arguments", "outputs", "aliased"), (3000, 512, 0), strict=True))
    return document(
        [traced(), differentiated(), optimised()],
        collectives={
            "stage": 2,
            "devices": 8,
            "axes": {"data": 4, "model": 2},
            "sent": 1024.0,
            "memory": {**memory, "temporaries": 2048, "total": 5560},
            "talks": talks,
        },
    )


def large(rows: int, stages: int) -> Json:
    """Many rows, each made from its like in the stage before."""
    made: list[Rows] = []
    for number in range(stages):
        stage = Rows(f"stage{number}", number - 1 if number else None)
        for row in range(rows):
            stage.add(
                ("mul", "add", "sin", "dot_general")[row % 4],
                f"v{row}:f32[{row % 7 + 1},16]",
                f"v{row - 1} v{max(0, row - 9)}",
                uses=[u for u in (row - 1, row - 9) if u >= 0],
                made=(row,) if number else (),
                line=10 + row % 5,
                scope=f"model/layer{row // 200}/{('attention', 'mlp')[row // 100 % 2]}",
                flops=(row * 7919) % 1000,
                nbytes=64 * (row % 5),
                live=1000 + (row * 31) % 500,
                change=NEW if row % 17 == 0 else SAME,
            )
        made.append(stage)
    return document(made)
