"""The pages that say what is proved and what is assumed, and the README's badge.

All are made from the registry, the ledger, and the statements of the proofs.
"""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from ...models.ledger import ROOT, Ledger
from . import assumptions
from .proof import Proof
from .runner import LEDGER, statements_of, tasks_of

__all__ = ["BADGE", "PAGE", "assumed", "badge", "page", "write"]

PAGE = ROOT / "docs" / "proofs.md"
BADGE = ROOT / "docs" / "proofs.svg"

HEAD = """\
# What is proved

Made from `formal/` and its ledger by `make prove`; `make test` checks that it is current.

{count} named sets of properties: {unbounded} hold without bound, by k-induction; {bounded} are
checked as far as the table says. Each has cover statements, which show that what it speaks of
happens at all ({covers} of them), and mutants, bugs planted in the core that it must catch
({mutants}). A proof is of the core with the parameters named, under the assumptions named.

`trebuchet prove NAME` runs one, `trebuchet prove --mutants NAME` its mutants. Seconds are those
of a machine with two cores; the solver is the one that was first.
"""

BADGE_TEXT = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img"
     aria-label="{label}: {value}">
<rect width="{left}" height="20" fill="#555"/>
<rect x="{left}" width="{right}" height="20" fill="#2c7a3f"/>
<g fill="#fff" font-family="Verdana,sans-serif" font-size="11">
<text x="6" y="14">{label}</text><text x="{at}" y="14">{value}</text></g></svg>
"""


def page(proofs: Iterable[Proof], path: Path = LEDGER) -> str:
    """The text of ``docs/proofs.md``: a table for each package of cores."""
    proofs, rows = list(proofs), Ledger(path).rows
    unbounded = sum(proof.method == "induction" for proof in proofs)
    text = HEAD.format(
        count=len(proofs),
        unbounded=unbounded,
        bounded=len(proofs) - unbounded,
        covers=sum(rows[f"{proof.name}.cover"]["covers"] for proof in proofs),
        mutants=sum(len(proof.mutants) for proof in proofs),
    )
    packages = defaultdict(list)
    for proof in proofs:
        packages[_package(proof)].append(proof)
    for package in sorted(packages):
        text += f"\n## {package}\n\n"
        text += "| property | core | method | covers | mutants | s | assumes | not proved |\n"
        text += "|---|---|---|---|---|---|---|---|\n"
        text += "".join(_row(proof, rows) for proof in sorted(packages[package], key=_name))
    return text


def _name(proof: Proof) -> str:
    return proof.name


def _package(proof: Proof) -> str:
    return proof.module.removeprefix("trebuchet.").rpartition(".")[0]


def _row(proof: Proof, rows: dict) -> str:
    main, cover = rows[proof.name], rows[f"{proof.name}.cover"]
    if proof.method == "induction":
        method, limits = f"induction, k = {main['depth']}", proof.not_proved
    else:
        method = f"checked for {main['depth']} cycles"
        limits = f"{proof.not_proved}; not unbounded: {proof.bounded}"
    cells = (
        f"**{proof.name}**: {proof.says}",
        f"`{proof.core}`",
        f"{method} ({main['solver']}, {main['asserts']} assertions)",
        f"{cover['covers']} within {cover['depth']}",
        str(len(proof.mutants)),
        f"{main['seconds']:.0f}",
        proof.assumes,
        limits,
    )
    return "".join(f"| {cell.replace('|', chr(92) + '|')} " for cell in cells) + "|\n"


def badge(proofs: Iterable[Proof]) -> str:
    """The badge as SVG."""
    proofs = list(proofs)
    unbounded = sum(proof.method == "induction" for proof in proofs)
    label, value = "proved", f"{unbounded} unbounded, {len(proofs) - unbounded} bounded"
    left, right = 12 + 7 * len(label), 12 + 7 * len(value)
    return BADGE_TEXT.format(
        label=label, value=value, left=left, right=right, width=left + right, at=left + 6
    )


def assumed(proofs: Iterable[Proof]) -> str:
    """The text of ``docs/assumptions.md``."""
    statements = {proof.name: statements_of(proof) for proof in proofs}
    return assumptions.page(statements, assumptions.laws())


def write(proofs: Iterable[Proof]) -> None:
    """Write pages and badge, if the ledger has all rows that they need."""
    proofs, rows = list(proofs), Ledger(LEDGER).rows
    if all(task.name in rows for proof in proofs for task in tasks_of(proof)):
        PAGE.write_text(page(proofs))
        assumptions.PAGE.write_text(assumed(proofs))
        BADGE.write_text(badge(proofs))
