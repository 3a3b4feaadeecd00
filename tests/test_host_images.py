"""`trebuchet image` and `trebuchet config`: files in, files out, one line for what is wrong."""

import ipaddress
import os
import pty
import threading

import pytest
from trebuchet.host import config
from trebuchet.host.cli import main
from trebuchet.host.console import send_image
from trebuchet.host.image import Image
from trebuchet.models.errors import TrebuchetError
from trebuchet.models.image import APPLICATION_BYTES
from trebuchet.sim.fleet.topology import PEERS, uniform

#: The first instruction of firmware.
JUMP = bytes.fromhex("6f00000b")


def _run(capsys, *arguments):
    """Exit code, standard output and errors of the command."""
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    out = capsys.readouterr()
    return ended.value.code or 0, out.out, out.err


def test_pack_and_show_an_image(capsys, tmp_path):
    contents, image = tmp_path / "application.bin", tmp_path / "a.img"
    contents.write_bytes(JUMP.ljust(100, b"\0"))
    code, _, _ = _run(
        capsys, "image", "pack", contents, "--board", "sim", "--version", "1.2", "-o", image
    )
    assert code == 0
    assert Image.unpack(image.read_bytes()).load == 0x4000_0000
    code, out, _ = _run(capsys, "image", "show", image)
    assert code == 0
    for line in ("board     sim", "version   1.2", "kind      firmware", "contents  100 bytes"):
        assert line in out


def test_a_bitstream_has_no_address(capsys, tmp_path):
    contents, image = tmp_path / "top.bit", tmp_path / "b.img"
    contents.write_bytes(b"\xff\x00Part: LFE5UM-45F\0\xff\xff\xff\xbd\xb3")
    options = ["--board", "versa_ecp5", "--kind", "bitstream", "-o", image]
    assert _run(capsys, "image", "pack", contents, *options)[0] == 0
    assert Image.unpack(image.read_bytes()).load == 0


@pytest.mark.parametrize(
    ("contents", "kind", "said"),
    [
        (b"hello", "firmware", "no firmware: it does not begin with the jump"),
        (b"only text", "firmware", "no firmware"),
        (b"\x7fELF" + bytes(99), "firmware", "name application.bin"),
        (bytes(8) + b"\xaa\x99\x55\x66", "firmware", "give --kind bitstream"),
        (JUMP + bytes(99), "bitstream", "no bitstream"),
        (bytes(5000) + b"\xaa\x99\x55\x66", "bitstream", "no bitstream"),
    ],
)
def test_contents_of_another_kind_are_refused(capsys, tmp_path, contents, kind, said):
    source, image = tmp_path / "source", tmp_path / "image"
    source.write_bytes(contents)
    options = ["--board", "sim", "--kind", kind, "-o", image]
    code, _, err = _run(capsys, "image", "pack", source, *options)
    assert code == 1
    assert said in err
    assert not image.exists()


def test_firmware_and_host_agree_on_the_room_for_firmware(root):
    header = (root / "firmware" / "bulk.h").read_text()
    assert f"#define APPLICATION_BYTES {APPLICATION_BYTES:#x}u\n" in header


def test_pack_and_show_settings(capsys, tmp_path):
    text, block = tmp_path / "settings.txt", tmp_path / "block.bin"
    text.write_text("# ours\n\nip = 10.0.0.5\ndhcp=0\n")
    assert _run(capsys, "config", "pack", text, "-o", block, "--sequence", "3")[0] == 0
    code, out, _ = _run(capsys, "config", "show", block)
    assert (code, out) == (0, "# sequence 3\nip=10.0.0.5\ndhcp=0\n")
    flash = tmp_path / "flash.bin"
    flash.write_bytes(b"\xff" * 4096 + block.read_bytes())
    assert _run(capsys, "config", "show", flash, "--offset", "0x1000")[1] == out
    assert _run(capsys, "config", "show", flash, "--offset", "x")[0] == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ip=10.0.0", "line 1: ip must be A.B.C.D, not '10.0.0'"),
        ("dhcp=0\nfoo=1", "line 2 must be KEY=VALUE with one of the keys ip, mac, "),
        ("nothing", "line 1 must be KEY=VALUE with one of the keys "),
        ("dhcp=0\ndhcp=1", "line 2: dhcp is there twice"),
        ("name=ä", "must be ASCII; byte 5 is not"),
    ],
)
def test_wrong_settings_are_one_line(capsys, tmp_path, text, message):
    source, block = tmp_path / "settings.txt", tmp_path / "block.bin"
    source.write_text(text, encoding="utf-8")
    code, out, err = _run(capsys, "config", "pack", source, "-o", block)
    assert (code, out) == (1, "")
    assert message in err
    assert str(source) in err
    assert err.count("\n") == 1
    assert not block.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["image", "show", "missing"], "t: cannot read missing: No such file or directory"),
        (["config", "show", "missing"], "t: cannot read missing: No such file or directory"),
        (["image", "show", "."], "t: cannot read .: Is a directory"),
        (["image", "show", "/dev/zero"], "/dev/zero must have at most 268435456 bytes"),
        (["image", "show", "empty"], "an image has a header of 64 bytes; here are 0: TRUNCATED"),
        (["image", "show", "junk"], "an image begins with TBIM, make one with"),
        (["config", "show", "junk"], "there is no configuration block here: NO_CONFIG"),
        (["image", "pack", "empty", "--board", "sim", "-o", "x"], "must have contents"),
        (["image", "pack", "junk", "--board", "b" * 25, "-o", "x"], "board must be 1 to 24 ASCII"),
        (
            ["image", "pack", "large", "--board", "sim", "-o", "x"],
            "large: firmware must have at most 262144 bytes, not 262145: TOO_LARGE",
        ),
        (
            ["image", "pack", "jump", "--board", "sim", "-o", "no/x"],
            "cannot write no/x: No such file or directory",
        ),
        *(
            (["image", "pack", "jump", "--board", "sim", "-o", where], f"t: cannot write {said}")
            for where, said in (
                (".", ".: Is a directory"),
                ("junk/x", "junk/x: Not a directory"),
                ("x" * 256, "x" * 256 + ": File name too long"),
                ("/proc/x", "/proc/x: No such file or directory"),
            )
        ),
    ],
)
def test_what_cannot_be_is_one_line(capsys, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").touch()
    (tmp_path / "junk").write_bytes(b"junk" * 40)
    (tmp_path / "jump").write_bytes(JUMP)
    (tmp_path / "large").write_bytes(bytes(APPLICATION_BYTES + 1))
    code, out, err = _run(capsys, *arguments)
    assert (code, out) == (1, "")
    assert message in err
    assert err.count("\n") == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["empty", "jump", "junk", "large"]


@pytest.mark.parametrize("name", ["out", "x" * 253])
def test_nothing_else_is_written(tmp_path, name):
    """The files beside it stay, and its mode does; what is new has the usual one."""
    out, beside = tmp_path / name, tmp_path / "out.new"
    beside.write_bytes(b"the user's")
    config.write_file(out, b"1")
    assert out.stat().st_mode == beside.stat().st_mode
    out.chmod(0o640)
    config.write_file(out, b"2")
    assert (out.read_bytes(), beside.read_bytes()) == (b"2", b"the user's")
    assert out.stat().st_mode & 0o777 == 0o640
    assert sorted(tmp_path.iterdir()) == sorted([out, beside])


def test_a_folder_with_a_like_name_is_not_in_the_way(tmp_path):
    (tmp_path / "out.new").mkdir()
    config.write_file(tmp_path / "out", b"1")
    assert (tmp_path / "out").read_bytes() == b"1"


@pytest.mark.parametrize("there", [True, False])
def test_what_a_link_points_to_is_written(tmp_path, there):
    folder, link = tmp_path / "folder", tmp_path / "link"
    folder.mkdir()
    if there:
        (folder / "file").touch()
    link.symlink_to("folder/file")
    config.write_file(link, b"1")
    assert link.is_symlink()
    assert (folder / "file").read_bytes() == b"1"
    assert [path.name for path in folder.iterdir()] == ["file"]


def test_a_link_to_itself_is_one_line(tmp_path):
    link = tmp_path / "link"
    link.symlink_to("link")
    with pytest.raises(TrebuchetError, match=r"link: Too many levels of symbolic links$"):
        config.write_file(link, b"1")
    assert link.is_symlink()


def test_a_pipe_is_written_as_it_is(tmp_path):
    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()), daemon=True)
    reader.start()
    config.write_file(pipe, b"1")
    reader.join(10)
    assert got == [b"1"]
    assert pipe.is_fifo()


@pytest.mark.parametrize("most", [0, 1, 5])
def test_no_more_is_read_than_there_may_be(tmp_path, most):
    path = tmp_path / "file"
    path.write_bytes(b"x" * most)
    assert config.read_file(path, most) == b"x" * most
    path.write_bytes(b"x" * (most + 1))
    with pytest.raises(TrebuchetError, match=f"file must have at most {most} bytes; it has more$"):
        config.read_file(path, most)


@pytest.mark.parametrize("count", [2, 3, PEERS + 1])
def test_settings_of_a_cluster(capsys, tmp_path, count):
    """The same peers as the simulated boards have that all call each other."""
    fleet = uniform(count)
    where = [f"{board.mac.upper()},{board.ip}" for board in fleet.boards]
    options = ["-o", tmp_path / "new" / "folder", "--timeout-us", "1000"]
    code, out, _ = _run(capsys, "config", "cluster", *where, *options)
    assert code == 0
    files = out.split()
    assert len(files) == count
    for board, name in zip(fleet.boards, files, strict=True):
        block = tmp_path / "block.bin"
        assert _run(capsys, "config", "pack", name, "-o", block)[0] == 0
        lines = _run(capsys, "config", "show", block)[1].splitlines()[1:]
        macs = {peer.ip: peer.mac for peer in fleet.boards}
        expected = [f"ip={board.ip}", f"mac={board.mac}"]
        for number, peer in enumerate(fleet.peers(board.name), 1):
            ip = str(ipaddress.IPv4Address(peer.ip))
            expected.append(f"peer{number}={macs[ip]},{ip},{peer.theirs},{peer.timeout_us},1")
        assert lines == expected


@pytest.mark.parametrize(
    ("boards", "message"),
    [
        (["02:00:00:00:00:01,10.0.0.2"], "a cluster must have 2 to 16 boards, not 1"),
        (["10.0.0.2", "10.0.0.3"], "a board must be MAC,IP, not '10.0.0.2'"),
        (
            ["02:00:00:00:00:01,10.0.0.2", "02:00:00:00:00:02,10.0.0.256"],
            "ip of a board must be A.B.C.D, not '10.0.0.256'",
        ),
        (
            ["02:00:00:00:00:01,10.0.0.2", "3:00:00:00:00:02,10.0.0.3"],
            "mac of a board must be XX:XX:XX:XX:XX:XX of one station, not '3:00:00:00:00:02'",
        ),
        (
            ["02:00:00:00:00:0a,10.0.0.2", "02:00:00:00:00:0A,10.0.0.3"],
            "two boards must not have the same mac, 02:00:00:00:00:0a; give each its own",
        ),
    ],
)
def test_no_cluster_of_these(capsys, tmp_path, boards, message):
    code, _, err = _run(capsys, "config", "cluster", *boards, "-o", tmp_path / "out")
    assert (code, err) == (1, f"trebuchet: {message}\n")
    assert not (tmp_path / "out").exists()


# --- over the serial line -------------------------------------------------------------------------


@pytest.fixture
def board():
    """A terminal, and a function that answers once so many bytes have come there."""
    near, far = pty.openpty()

    def answer(count, text):
        def run():
            came = b""
            while len(came) < count:
                came += os.read(near, 4096)
            os.write(near, text)
            got.append(came)

        got = []
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return got, thread

    yield os.ttyname(far), answer
    os.close(near)
    os.close(far)


def test_an_image_goes_over_the_serial_line_as_it_is(board):
    """Every byte value, whatever a terminal makes of it by default."""
    device, answer = board
    data = bytes(range(256)) * 20
    got, thread = answer(len(data), b"boot: send an image\r\nboot: received: BAD_DATA\r\n")
    assert send_image(device, data) == "BAD_DATA"
    thread.join()
    assert b"".join(got) == data


def test_a_line_without_an_answer(board, tmp_path):
    device, answer = board
    answer(3, b"trebuchet> ")
    with pytest.raises(TrebuchetError, match="last line: 'trebuchet>'.* boot ROM takes an image"):
        send_image(device, b"abc", timeout=0.2)
    (tmp_path / "file").touch()
    for name in ("no", "file"):
        with pytest.raises(TrebuchetError, match=f"^cannot open serial port {tmp_path / name}: "):
            send_image(str(tmp_path / name), b"abc")


def test_a_line_that_takes_nothing(board):
    """A terminal that nobody reads is full after some kilobytes."""
    device, _ = board
    with pytest.raises(TrebuchetError, match=f"^serial port {device} does not take the image: "):
        send_image(device, bytes(1 << 17), timeout=0.2)
