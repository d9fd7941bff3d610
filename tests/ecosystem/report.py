"""The table of docs/ecosystem.md: a row for each client, with its times against jax.

table(find([]), results, {"optax": "0.2.8"})
"""

from collections.abc import Sequence
from pathlib import Path

from .clients import Client
from .compare import difference
from .runs import CLOCKS, ROOT, Outcome, Results

PAGE = ROOT / "docs" / "ecosystem.md"
START, END = "<!-- table -->\n", "<!-- end of table -->\n"
HEAD = ("client", "version", "ends as under jax", *CLOCKS)


def verdict(client: Client, results: Results) -> str:
    """`yes`, or why the example does not end as it does under jax."""
    ours = results[client.name, "verax"]
    theirs = results.get((client.name, "jax"))
    if ours.error is not None:
        return f"no: {ours.error}"
    if theirs is None:
        return "runs; not compared"
    if theirs.error is not None:
        return f"not compared, jax failed: {theirs.error}"
    differs = difference(ours.output, theirs.output, client.tolerance)
    return "yes" if differs is None else f"no: {differs}"


def against(ours: Outcome, theirs: Outcome | None, clock: str) -> str:
    """The ratio and both times, or the time alone, or nothing where it failed."""
    if ours.error is not None:
        return ""
    if theirs is None or theirs.error is not None:
        return f"{ours.median(clock):.2f} s"
    mine, base = ours.median(clock), theirs.median(clock)
    return f"{mine / base:.2f} ({mine:.2f} s / {base:.2f} s)"


def row(client: Client, results: Results, versions: dict[str, str]) -> list[str]:
    """The cells of one client."""
    ours = results[client.name, "verax"]
    theirs = results.get((client.name, "jax"))
    times = [against(ours, theirs, clock) for clock in CLOCKS]
    name = client.name.replace("_", " ")
    said = verdict(client, results).replace("|", "\\|")
    return [name, versions.get(client.distribution, "?"), said[:200], *times]


def table(clients: Sequence[Client], results: Results, versions: dict[str, str]) -> str:
    """The rows as Markdown."""
    rows = [row(client, results, versions) for client in clients]
    cells = [list(HEAD), ["---"] * len(HEAD), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in cells)


def write(result: str, page: Path = PAGE) -> None:
    """Put a table between the marks of the page."""
    before, _, rest = page.read_text().partition(START)
    _, _, after = rest.partition(END)
    page.write_text(before + START + "\n" + result + "\n" + END + after)
