"""What proofs assume of each other, and who asserts it: laws, their faults, a page of both sides.

A function that states a law with ``check``, which is ``Assume`` for one proof and ``Assert`` for
another, is the best form: one text is on both sides, and is found there. So is the ready/valid
contract. For all other assumptions the files of ``formal/laws`` say what they are about, and name
the assertion; both must be stated by the proofs as they are (:func:`faults`). A law has one of

``asserted``
    It is about a part: assertions in proofs of the part, or of what joins the two. Of a record that
    goes round, or another invariant, the proof that assumes it may assert it of what it hands on.
``outside``
    It is about what is no part: why that holds.
``choice``
    It is about nothing: it narrows what the solver chooses, to a number that there is, or to one of
    the cases of a proof.
``tested``
    It is about a part, but no proof asserts it: tests that fail without it, as in
    ``docs/testplan.toml``. That is second best.

What cannot be seen here is whether an assertion says as much as the assumption: a reader of
``docs/assumptions.md`` sees both.
"""

import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ...models.ledger import ROOT
from .stated import Statement

__all__ = ["LAWS", "PAGE", "Law", "faults", "laws", "page"]

LAWS = ROOT / "formal" / "laws"
PAGE = ROOT / "docs" / "assumptions.md"
KINDS = ("asserted", "outside", "choice", "tested")

#: No assumption about anything but the runner: see :func:`~.stream.new_harness`.
_RESET = "stream: ~ResetSignal()"
_STREAM = re.compile(r"^[\w.]+: (stream_rules|_rules)\(")


@dataclass(frozen=True)
class Law:
    """An entry of ``formal/laws``: assumptions that mean the same, and what they rest on."""

    says: str
    assumed: tuple[str, ...]
    kind: str
    grounds: tuple[str, ...]
    file: str = ""


def laws(folder: Path = LAWS) -> list[Law]:
    """The entries of ``formal/laws``, by file."""
    found = []
    for path in sorted(folder.glob("*.toml")):
        for entry in tomllib.loads(path.read_text())["law"]:
            (kind,) = (name for name in KINDS if name in entry)
            grounds = entry[kind]
            grounds = tuple(grounds) if isinstance(grounds, list) else (grounds,)
            found.append(Law(entry["says"], tuple(entry["assumed"]), kind, grounds, path.stem))
    return found


class Sides:
    """Who assumes and who asserts what: ``statements`` are those of each proof, by its name."""

    def __init__(self, statements: dict[str, list[Statement]]):
        self.assumed: dict[str, set[str]] = defaultdict(set)
        self.asserted: dict[str, set[str]] = defaultdict(set)
        self.shared: set[str] = set()
        for proof, made in statements.items():
            for one in made:
                if one.text == _RESET:
                    continue
                side = self.assumed if one.kind == "assume" else self.asserted
                side[one.text].add(proof)
                if one.shared:
                    self.shared.add(one.text)

    def by_one_text(self, text: str) -> bool:
        """Whether each proof that assumes ``text`` has it asserted, word for word, by another."""
        others = self.asserted[text]
        return text in self.shared and all(others - {proof} for proof in self.assumed[text])

    def streams(self) -> list[str]:
        """The assumptions that a port keeps the stream rules."""
        return [text for text in self.assumed if _STREAM.search(text)]

    def rest(self) -> list[str]:
        """The assumptions that need a law."""
        streams = set(self.streams())
        return [t for t in self.assumed if t not in streams and not self.by_one_text(t)]


def faults(statements: dict[str, list[Statement]], known: Iterable[Law]) -> list[str]:
    """What is wrong with the laws: of an assumption without one, and of a law without a ground."""
    sides, known = Sides(statements), list(known)
    count = Counter(text for law in known for text in law.assumed)
    found = [
        f"{', '.join(sorted(sides.assumed[text]))}: no law says who asserts `{text}`"
        for text in sides.rest()
        if not count[text]
    ]
    found += [f"`{text}` is in {n} laws" for text, n in count.items() if n > 1]
    for law in known:
        found += [
            f"law {law.says!r}: no proof assumes `{text}`, or it needs no law"
            for text in sorted(set(law.assumed) - set(sides.rest()))
        ]
        if law.kind == "asserted":
            found += [
                f"law {law.says!r}: no proof asserts `{ground}`"
                for ground in law.grounds
                if not sides.asserted[ground]
            ]
    return found


HEAD = """\
# What proofs assume

Made from the proofs and `formal/laws` by `trebuchet prove --record`; `make test` checks that it is
current, that no assumption is missing, and that each assertion is made by the proofs named.

A proof of a part stands on assumptions about its neighbours. {count} assumptions of {proofs} proofs
are below, each with what it rests on: assertions in the proofs of the neighbour ({asserted}), the
same text asserted there ({shared}), the ready/valid contract ({streams}), a reason why what is
outside of all cores keeps it ({outside}), tests only ({tested}), or nothing, where it narrows
the solver's choices ({choice}). Statements are quoted from `formal/`, with the name of the module.

## The ready/valid contract

{stream_proofs} proofs assume the rules of `cores/stream.py` of the streams that come in. Every
component with a stream that goes out asserts them, in its proof `contract_…` or in the one that
`tests/test_prove_contracts.py` names.

## One text on both sides

| assumption | assumed by | asserted by |
|---|---|---|
"""


def page(statements: dict[str, list[Statement]], known: Iterable[Law]) -> str:
    """The text of ``docs/assumptions.md``."""
    sides, known = Sides(statements), list(known)
    shared = sorted(text for text in sides.assumed if sides.by_one_text(text))
    shared = [text for text in shared if not _STREAM.search(text)]
    kinds = Counter({kind: 0 for kind in KINDS})
    for law in known:
        kinds[law.kind] += len(law.assumed)
    streams = sides.streams()
    text = HEAD.format(
        count=len(sides.assumed),
        proofs=len(set().union(*sides.assumed.values())),
        shared=len(shared),
        streams=len(streams),
        stream_proofs=len(set().union(*(sides.assumed[text] for text in streams))),
        **kinds,
    )
    for one in shared:
        text += _row(_code(one), _names(sides.assumed[one]), _names(sides.asserted[one]))
    titles = {law.file: None for law in known}
    for title in titles:
        text += f"\n## Laws: {title}\n\n| law | assumption | assumed by | rests on |\n"
        text += "|---|---|---|---|\n"
        for law in (law for law in known if law.file == title):
            grounds = _grounds(law, sides)
            for one in law.assumed:
                text += _row(law.says, _code(one), _names(sides.assumed[one]), grounds)
    return text


def _grounds(law: Law, sides: Sides) -> str:
    if law.kind == "asserted":
        grounds = [f"{_code(g)} ({_names(sides.asserted[g], 3)})" for g in law.grounds]
        return "; ".join(grounds)
    said = ", ".join(law.grounds)
    return {"outside": f"outside: {said}", "choice": said, "tested": f"tests only: {said}"}[
        law.kind
    ]


def _names(proofs: Iterable[str], most: int = 8) -> str:
    names = sorted(proofs)
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if names[most:] else "")


def _code(text: str) -> str:
    return f"`{text}`"


def _row(*cells: str) -> str:
    return "".join(f"| {cell.replace('|', chr(92) + '|')} " for cell in cells) + "|\n"
