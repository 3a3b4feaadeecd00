"""The firmware's parsers under hostile input, a short run of each fuzz target."""

import json
import shutil

import pytest
from firmware_fuzz import FIRMWARE, FOLDER, TARGETS, compiled, corpus, fuzz

INPUTS = 200_000

#: A target that reads a byte too far, does what is undefined, or is wrong, on some mutation.
FAULTY = """\
// firmware: text
#include "fuzz.h"
const char *const fuzz_dictionary[] = {{ "magic", NULL }};
void fuzz_one(const char *data, size_t length)
{{
    static volatile int sink;
    sink = 0x7fffffff;
    (void)sink;
    if (length > 9 && data[0] == 'x')
        {fault};
}}
"""


@pytest.mark.parametrize("target", TARGETS)
def test_no_fault(target, tmp_path):
    code, text, _ = fuzz(target, INPUTS, 1, tmp_path)
    assert code == 0, text
    assert json.loads(text)["inputs"] == INPUTS


def test_every_target_has_a_corpus():
    assert {p.name for p in (FOLDER / "corpus").iterdir()} == set(TARGETS)
    assert all(corpus(target) for target in TARGETS)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("sink = data[length]", "AddressSanitizer: use-after-poison"),
        ("sink = data[-1]", "AddressSanitizer: heap-buffer-overflow"),
        ("sink = sink + 1", "signed integer overflow"),
        ("require(length < 10)", "not true: length < 10"),
    ],
)
def test_the_driver_sees_faults_and_keeps_the_input(tmp_path, monkeypatch, fault, message):
    (tmp_path / "target_faulty.c").write_text(FAULTY.format(fault=fault))
    (tmp_path / "corpus" / "faulty").mkdir(parents=True)
    (tmp_path / "corpus" / "faulty" / "one").write_text("x234")
    for name in ("fuzz.h", "driver.c"):
        (tmp_path / name).write_text((FOLDER / name).read_text())
    monkeypatch.setattr("firmware_fuzz.FOLDER", tmp_path)
    code, text, kept = fuzz("faulty", 100_000, 1, tmp_path)
    assert code != 0
    assert message in text
    assert kept.read_bytes()[:1] == b"x"
    assert len(kept.read_bytes()) > 9


def test_the_target_node_uses_numbers_of_lost_connections_again(tmp_path, monkeypatch):
    """The corpus alone finds a node that does not see that its configuration's owner is gone."""
    firmware = tmp_path / "firmware"
    shutil.copytree(FIRMWARE, firmware)
    lines = '\t\tnode->busy = false;\n\t\tstep->note = "a configuration stopped in the middle: '
    text = (firmware / "node.c").read_text()
    assert text.count(lines) == 1
    (firmware / "node.c").write_text(text.replace(lines, lines.replace("= false", "= true")))
    monkeypatch.setattr("firmware_fuzz.FIRMWARE", firmware)
    code, text, _ = fuzz("node", len(corpus("node")), 1, tmp_path)
    assert code != 0
    assert "not true: !again || !node->busy" in text


def test_the_same_seed_gives_the_same_inputs(tmp_path, monkeypatch):
    source = FAULTY.format(fault="require(length < 20)")
    (tmp_path / "target_faulty.c").write_text(source)
    (tmp_path / "corpus" / "faulty").mkdir(parents=True)
    (tmp_path / "corpus" / "faulty" / "one").write_text("x234")
    for name in ("fuzz.h", "driver.c"):
        (tmp_path / name).write_text((FOLDER / name).read_text())
    monkeypatch.setattr("firmware_fuzz.FOLDER", tmp_path)
    kept = [fuzz("faulty", 100_000, seed, tmp_path)[2].read_bytes() for seed in (7, 7, 8)]
    assert kept[0] == kept[1] != kept[2]


def test_a_target_says_what_it_is_linked_with(tmp_path, monkeypatch):
    (tmp_path / "target_faulty.c").write_text("#include <fuzz.h>\n")
    monkeypatch.setattr("firmware_fuzz.FOLDER", tmp_path)
    with pytest.raises(ValueError, match="^the first line of target_faulty.c must be"):
        compiled("faulty", tmp_path)
