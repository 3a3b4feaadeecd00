"""What elaboration tells of a proof is kept while the sources are unchanged, and only then."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest
from prove_lib import Sum, proof_of
from trebuchet.formal.kit import memo, registry, runner

PROOF = registry.PROOFS[0]


@pytest.fixture
def calls(tmp_path):
    """`calls(proof)`: a value of it, made as "1", "2" … when it has to be made anew."""
    made = []

    def kept(proof=PROOF):
        return memo.kept(proof, tmp_path / "netlists", lambda: made.append(0) or f"{len(made)}")

    kept.made = made
    kept.file = tmp_path / "netlists" / f"{PROOF.name}.json"
    return kept


def test_a_value_is_made_once(calls):
    assert [calls(), calls(), calls()] == ["1", "1", "1"]
    assert calls(replace(PROOF, name="another")) == "2"


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "3", '{"value": "7"}', '{"value": "7", "check": "0"}']
)
def test_an_invalid_memo_is_ignored(calls, content):
    calls()
    calls.file.write_text(content)
    assert calls() == "2"
    assert calls() == "2"


def test_an_edited_value_is_ignored(calls):
    calls()
    found = json.loads(calls.file.read_text())
    calls.file.write_text(json.dumps({**found, "value": "7"}))
    assert calls() == "2"


def test_changed_sources_make_it_invalid(calls, monkeypatch):
    calls()
    monkeypatch.setattr(memo, "KEY", "other sources")
    monkeypatch.setattr(memo, "_key", lambda *_: "other sources")
    assert calls() == "2"
    # The sources are no longer those that this process has imported: nothing is kept.
    assert calls() == "3"
    monkeypatch.setattr(memo, "sources_key", lambda: "other sources")
    assert [calls(), calls()] == ["4", "4"]


@pytest.mark.parametrize(
    ("file", "stale"),
    [
        ("cores/tcp/receive.py", True),
        ("cores/tcp/record.py", True),
        ("formal/tcp/receive.py", True),
        ("formal/stream.py", True),
        ("models/errors.py", True),
        ("cores/roles/matmul/lane.py", False),
        ("formal/roles/matmul/lane.py", False),
    ],
)
def test_a_proof_depends_on_what_its_core_and_harness_import(monkeypatch, file, stale):
    key = memo._key.__wrapped__
    names = ("trebuchet.cores.tcp.receive", "trebuchet.formal.tcp.receive")
    before = key(*names)
    changed = {path: "x" if path == memo.ROOT / file else v for path, v in memo._CONTENTS.items()}
    assert changed != memo._CONTENTS
    monkeypatch.setattr(memo, "_CONTENTS", changed)
    assert (key(*names) != before) is stale


def test_data_beside_a_core_counts(monkeypatch):
    names = ("trebuchet.cores.roles.ecg.network", "trebuchet.formal.roles.ecg.dwt")
    before = memo._key.__wrapped__(*names)
    weights = memo.ROOT / "models" / "ecg" / "weights.json"
    monkeypatch.setattr(memo, "_CONTENTS", {**memo._CONTENTS, weights: "x"})
    assert memo._key.__wrapped__(*names) != before


def test_a_harness_elsewhere_has_no_memo(calls):
    """Its sources are not known, and two of its kind may have one name."""
    assert [calls(proof_of(Sum())), calls(proof_of(Sum()))] == ["1", "2"]


def test_every_registered_harness_is_in_the_sources():
    for proof in registry.PROOFS:
        assert proof.build.__module__.startswith("trebuchet.formal."), proof.name
        assert proof.module.startswith(("trebuchet.cores.", "trebuchet.formal.")), proof.name


def test_digest_and_statements_are_those_of_the_netlist(tmp_path, monkeypatch):
    """By way of the memo and without it."""
    monkeypatch.setattr(runner, "BUILD", tmp_path)
    runner._elaborated.cache_clear()
    try:
        first = runner._elaborated(PROOF), runner.statements_of(PROOF)
        runner._elaborated.cache_clear()
        monkeypatch.setattr(runner, "_rtlil", None)
        assert (runner._elaborated(PROOF), runner.statements_of(PROOF)) == first
    finally:
        runner._elaborated.cache_clear()


@pytest.fixture
def tree(tmp_path, root):
    """A copy of what netlists are made from."""
    for folder in memo.FOLDERS:
        shutil.copytree(
            root / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__")
        )
    return tmp_path


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("cores/tcp/receive.py", "m = Module()", "m = Module()\n        m.d.comb += []"),
        ("cores/roles/verilog_example/adler32.v", "endmodule", "wire more; endmodule"),
        ("models/ecg/weights.json", "1", "2"),
        *(
            pytest.param(*values, marks=pytest.mark.nightly)
            for values in (
                ("formal/stream.py", "2 * capacity", "3 * capacity"),
                ("models/status.py", "import", "import os, "),
            )
        ),
    ],
)
def test_a_change_changes_the_key(tree, file, old, new):
    before = memo.sources_key(tree)
    text = (tree / file).read_text()
    assert old in text
    (tree / file).write_text(text.replace(old, new, 1))
    assert memo.sources_key(tree) != before


def test_comments_and_ledgers_do_not_change_the_key(tree):
    before = memo.sources_key(tree)
    for file in ("cores/tcp/receive.py", "formal/stream.py", "models/status.py"):
        with (tree / file).open("a") as source:
            source.write("# a comment\n")
    (tree / "formal" / "ledger").mkdir(exist_ok=True)
    (tree / "formal" / "ledger" / "tcp.json").write_text("{}")
    assert memo.sources_key(tree) == before


def test_the_command_elaborates_nothing_in_an_unchanged_tree():
    """Elaboration is what takes long. The first selection fills the memos."""
    program = (
        "from dataclasses import replace\n"
        "from trebuchet.formal.kit import registry, runner\n"
        "proofs = [replace(proof, quick=False) for proof in registry.PROOFS[:3]]\n"
        "runner.select(proofs, [], False)\n"
        "def refuse(*arguments): raise AssertionError\n"
        "runner._rtlil = refuse\n"
        "runner._elaborated.cache_clear()\n"
        "runner.select(proofs, [], False)\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True)


def test_a_proof_of_the_contract_depends_on_the_module_that_states_it():
    """Its size and its invariants are there, not in `contracts`."""
    proofs = [proof for proof in registry.PROOFS if proof.name.startswith("contract_")]
    assert len(proofs) > 50
    assert not [p.name for p in proofs if p.build.__module__ == "trebuchet.formal.kit.contracts"]
