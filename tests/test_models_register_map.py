"""Register maps: their hash, what names find, files that are none."""

import json

import pytest
from fake_registers import BASE, NIC, REGIONS, TCP
from trebuchet.models import register_map
from trebuchet.models.errors import TrebuchetError
from trebuchet.models.register_map import find_map, hash_of_blocks, keep_map, leave_map, read_map
from trebuchet.soc.csr_export import json_map
from trebuchet.soc.firmware import build_header


@pytest.fixture
def found(tmp_path):
    (tmp_path / "registers.json").write_text(json_map(REGIONS))
    return read_map(tmp_path)


@pytest.fixture
def places(monkeypatch, tmp_path):
    """Empty folders in the place of builds and cache."""
    monkeypatch.setattr(register_map, "BUILD", tmp_path / "build")
    monkeypatch.setattr(register_map, "MAPS", tmp_path / "build" / "register_maps")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def test_the_hash_is_of_names_places_and_access(found):
    blocks = json.loads(json_map(REGIONS))["blocks"]
    assert json.loads(json_map(REGIONS))["map"] == found.hash == hash_of_blocks(blocks)
    assert f'"{found.hash}"' in build_header(REGIONS)
    register = blocks["tcp"]["registers"]["rto_min"]
    register["description"], register["reset"] = "other words", 7
    assert hash_of_blocks(dict(reversed(blocks.items()))) == found.hash
    for key, value in (("address", BASE + 64), ("width", 17), ("access", "ro")):
        changed = json.loads(json_map(REGIONS))["blocks"]
        changed["tcp"]["registers"]["rto_min"][key] = value
        assert hash_of_blocks(changed) != found.hash
    assert hash_of_blocks(json.loads(json_map([(TCP, BASE)]))["blocks"]) != found.hash


def test_registers_and_fields_by_name(found):
    register, field = found.find("tcp.octets")
    assert (register.address, register.words, register.width) == (BASE + 20, 2, 64)
    assert field is None
    assert found.blocks() == ["tcp", "nic"]
    assert found.of_block("nic") == ["status", "mode", "seen", "mac"]
    register, field = found.find("nic.mode.high")
    assert field.of(0x5A) == 5
    assert field.put(0x5A, 0xF) == 0xFA
    assert not found.find("tcp.go")[0].readable
    assert not found.find("tcp.segments")[0].writable


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("tcp.rto*", ["tcp.rto_min", "tcp.rto_initial"]),
        ("nic", ["nic.status", "nic.mode", "nic.seen", "nic.mac"]),
        ("*.m?[cd]*", ["nic.mode", "nic.mac"]),
        ("tcp.go", ["tcp.go"]),
    ],
)
def test_patterns(found, pattern, names):
    assert [register.name for register, _ in found.select(pattern)] == names


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("tcp.rto_mim", "there is no register 'tcp.rto_mim', did you mean 'tcp.rto_min'?"),
        ("tpc.rto_min", "there is no register 'tpc.rto_min', did you mean 'tcp.rto_min'?"),
        ("rto_min", "there is no register 'rto_min', did you mean 'tcp.rto_min'?"),
        ("zzz.y", "there is no register 'zzz.y'; its blocks are: tcp, nic"),
        (
            "tcp.zzz",
            "there is no register 'tcp.zzz'; its registers are: enable, rto_min, rto_initial, "
            "segments, go, …",
        ),
        ("nic.mode.hihg", "register nic.mode has no field 'hihg', did you mean 'high'?"),
        ("nic.status.zz", "register nic.status has no field 'zz'; its fields are: pending"),
        ("tcp.enable.x", "register tcp.enable has no field 'x'; its fields are: none"),
        ("z*", "no register fits 'z*'; its blocks are: tcp, nic"),
    ],
)
def test_names_that_are_none(found, name, said):
    with pytest.raises(TrebuchetError) as caught:
        found.select(name)
    assert str(caught.value) == said


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "[" * 100_000,
        '{"blocks": {"a": {}}}',
        '{"blocks": {"a": {"registers": {"b": {}}}}}',
        json_map(REGIONS).replace('"access": "ro"', '"access": "maybe"'),
        json_map(REGIONS).replace('"width": 48', '"width": 65'),
        json_map(REGIONS).replace(f'"address": {BASE}', f'"address": {BASE + 1}'),
        json_map(REGIONS).replace(f'"address": {BASE}', '"address": "x"'),
    ],
)
def test_files_that_are_no_map(tmp_path, text):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(TrebuchetError, match=r"x\.json is no register map; a build leaves one as"):
        read_map(tmp_path / "x.json")


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(TrebuchetError, match=r"cannot read .*registers\.json: No such file"):
        read_map(tmp_path)


def test_maps_are_found_where_builds_and_users_left_them(found, places):
    assert find_map(found.hash) is None
    for folder in ("one", "two"):
        (places / "build" / folder).mkdir(parents=True)
    (places / "build" / "one" / "registers.json").write_text("junk")
    (places / "build" / "two" / "registers.json").write_text(json_map(REGIONS))
    assert find_map(found.hash).hash == found.hash
    (places / "build" / "two" / "registers.json").write_text(json_map([(NIC, BASE)]))
    assert find_map(found.hash) is None
    assert keep_map(places / "registers.json").hash == found.hash
    assert find_map(found.hash).registers == found.registers
    for hash in ("", "../x", found.hash.upper(), found.hash + "0"):
        assert find_map(hash) is None


def test_a_build_leaves_its_map_for_later(found, places):
    leave_map(json_map(REGIONS))
    leave_map(json_map(REGIONS))
    assert find_map(found.hash).hash == found.hash
    file = places / "build" / "register_maps" / f"{found.hash}.json"
    file.write_text(json_map([(NIC, BASE)]))  # another map under that name
    assert find_map(found.hash) is None


def test_a_cache_that_takes_no_files(found, places):
    (places / "cache").write_text("a file where a folder should be")
    assert keep_map(places / "registers.json").hash == found.hash
