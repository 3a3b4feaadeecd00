"""`trebuchet config message` and `send`: what they write, and what they say of wrong input."""

import json
import struct

import pytest
from fake_board import FakeBoard
from trebuchet.client.smp import Core, Decoder, MessageType, parse_configuration
from trebuchet.cores.csr import Register, RegisterBlock
from trebuchet.cores.roles.contract import role_block
from trebuchet.host.config import app
from trebuchet.models.image import Image, Kind
from trebuchet.models.status import Status
from trebuchet.soc.csr_export import json_map
from typer.testing import CliRunner

SLOTS = {"ecg": 0xF000_1000, "loopback_0": 0xF000_2000, "loopback_1": 0xF000_3000}


@pytest.fixture
def build(tmp_path):
    """The folder of a build with these roles, and a block that is none."""
    other = RegisterBlock("shell", (Register("enable", "rw", 1, "on"),), "other")
    regions = [(other, 0xF000_0000), *((role_block(name), at) for name, at in SLOTS.items())]
    (tmp_path / "registers.json").write_text(json_map(regions))
    return tmp_path


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def written(path):
    (message,) = Decoder().feed(path.read_bytes())
    assert message.kind == MessageType.CONFIGURATION
    return parse_configuration(message.payload)


@pytest.mark.parametrize(
    ("options", "slots"),
    [((), ["ecg"]), (("--role", "loopback"), ["loopback_0", "loopback_1"])],
)
def test_a_message_for_a_build(build, options, slots):
    file = build / "m.bin"
    done = run("message", build, "-o", file, "--input-size", 64, "--output-size", 9, *options)
    assert done.exit_code == 0, done.exception
    made = written(file)
    assert made.cores == tuple(Core(SLOTS[name], 0, 0) for name in slots)
    assert (made.input_size, made.output_size, made.bitstream) == (64, 9, b"")


def test_an_image_and_a_benchmark(build):
    image, file = build / "new.img", build / "m.bin"
    image.write_bytes(Image(Kind.bitstream, "ulx3s", "2", b"bits" * 40).pack())
    assert run("message", build, "-o", file, "--image", image).exit_code == 0
    assert written(file).bitstream == image.read_bytes()
    assert run("message", build, "-o", file, "--benchmark", 949, "--output-size", 16).exit_code == 0
    assert file.read_bytes()[8:] == struct.pack("<IIII", 0, 16, 0, 949)
    image.write_bytes(image.read_bytes()[:-1])
    done = run("message", build, "-o", file, "--image", image)
    assert str(done.exception).startswith(f"{image}: ")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--role", "blur"), "there is no role 'blur'; there are: ecg, loopback_0, loopback_1"),
        (("--benchmark", "1", "--role", "ecg"), "a benchmark has neither --role nor --image"),
    ],
)
def test_wrong_options(build, words, says):
    done = run("message", build, "-o", build / "m.bin", *words)
    assert str(done.exception).startswith(says)


@pytest.mark.parametrize("text", ["{}", "[1]", "no json", json.dumps({"blocks": {"a": 3}})])
def test_a_folder_that_is_no_build(tmp_path, text):
    (tmp_path / "registers.json").write_text(text)
    done = run("message", tmp_path, "-o", tmp_path / "m.bin")
    assert "does not list registers" in str(done.exception)
    (tmp_path / "registers.json").unlink()
    done = run("message", tmp_path, "-o", tmp_path / "m.bin")
    assert "is no build with registers" in str(done.exception)


def test_the_roles_of_a_running_board(tmp_path):
    text = "ecg at 0xf0001000: on, 0 jobs, 0 errors\nblur at 0xf0002000: off, 0 jobs, 0 errors\n"
    with FakeBoard(commands={"role": (Status.OK, text)}) as fake:
        address = f"127.0.0.1:{fake.management}"
        done = run("message", address, "-o", tmp_path / "m", "--role", "blur")
        assert done.exit_code == 0, done.exception
    assert written(tmp_path / "m").cores == (Core(0xF000_2000, 0, 0),)


def test_send_what_is_no_message(tmp_path):
    (tmp_path / "m").write_bytes(b"\x01\0\0\0\x05\0\0\0ab")
    done = run("send", "127.0.0.1:1", tmp_path / "m")
    assert "does not hold one configuration message" in str(done.exception)
