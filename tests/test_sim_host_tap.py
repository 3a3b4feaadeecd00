"""``trebuchet sim --tap``: the board on a TAP device of the network that the command runs on."""

import errno
import subprocess
import sys

import pytest
from sim_tops import needs_network
from trebuchet.host.cli import app
from trebuchet.models.errors import TrebuchetError
from trebuchet.sim import host_tap as host_tap_module
from trebuchet.sim.host_tap import HostTap, host_tap
from trebuchet.sim.netns import Namespace
from typer.testing import CliRunner

SIM = [sys.executable, "-m", "trebuchet.host.cli", "sim"]
SHOW = "ip -o -4 address show dev tb0; echo board $TREBUCHET_BOARD"


@pytest.mark.parametrize("name", ["", "a" * 16, "a/b", "a b", "..", "tap%d"])
def test_names_that_no_device_has(name):
    with pytest.raises(TrebuchetError, match="^--tap must be a device's name of up to 15 letters"):
        host_tap(name)


@pytest.mark.parametrize(
    ("number", "there", "message"),
    [
        (errno.EPERM, False, "only root makes TAP devices; have root make it .* dev tb0 mode tap"),
        (errno.EPERM, True, "the device belongs to another user; choose another name"),
        (errno.EBUSY, True, "another program has this device open; end it, or choose another name"),
        (errno.EINVAL, True, "this is a network device, but no TAP device; choose another name"),
        (errno.ENOENT, False, "there is no /dev/net/tun; load the .* with: sudo modprobe tun"),
        (errno.EIO, False, "it cannot be opened: Input/output error"),
    ],
)
def test_devices_that_cannot_be_opened(number, there, message, monkeypatch):
    def refuse(name):
        raise OSError(number, "Input/output error")

    monkeypatch.setattr(host_tap_module, "_open", refuse)
    devices = [(1, "lo"), (2, "tb0")] if there else [(1, "lo")]
    monkeypatch.setattr(host_tap_module.socket, "if_nameindex", lambda: devices)
    with pytest.raises(TrebuchetError, match=f"^--tap tb0: {message}"):
        host_tap("tb0")
    monkeypatch.setattr(host_tap_module, "_open", lambda name: None)
    assert host_tap("tb0") == HostTap("tb0", there)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["bridge", "--tap", "tb0"], "--tap is for boards with one port, not for the top bridge"),
        (["--boards", "2", "--tap", "tb0"], "--tap is for one board; leave it out with --boards"),
    ],
)
def test_what_has_networks_of_its_own_is_refused(words, message, monkeypatch):
    monkeypatch.setattr("trebuchet.sim.cli.host_tap", lambda name: HostTap(name, False))
    monkeypatch.setattr("trebuchet.sim.cli._compile", None)
    done = CliRunner().invoke(app, ["sim", *words])
    assert isinstance(done.exception, TrebuchetError)
    assert str(done.exception).startswith(message)


def _on_a_network(*commands):
    """Run commands one after another on a network that stands for the machine's."""
    with Namespace() as machine:
        for command in commands:
            done = subprocess.run(machine.enter(command), capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
    return done.stdout


@needs_network
def test_a_device_is_made_and_disappears():
    gone = ["sh", "-c", "! ip link show tb0 && echo gone"]
    simulate = [*SIM, "mirror", "--tap", "tb0", "--exec", SHOW]
    said = _on_a_network(["sh", "-c", f"{' '.join(map(_quoted, simulate))} && ! ip link show tb0"])
    assert "192.0.2.1/24" in said
    assert "board 192.0.2.2" in said
    assert _on_a_network(simulate, gone).strip() == "gone"


@needs_network
def test_a_device_that_is_there_keeps_its_addresses():
    said = _on_a_network(
        ["ip", "tuntap", "add", "dev", "tb0", "mode", "tap"],
        ["ip", "address", "add", "198.51.100.9/28", "dev", "tb0"],
        ["ip", "link", "set", "tb0", "up"],
        [*SIM, "mirror", "--tap", "tb0", "--exec", SHOW],
        ["ip", "-o", "-4", "address", "show", "dev", "tb0"],
    )
    assert "198.51.100.9/28" in said
    assert "192.0.2.1" not in said


@needs_network
def test_a_device_of_another_kind_is_refused():
    with pytest.raises(AssertionError, match="--tap lo: this is a network device, but no TAP"):
        _on_a_network([*SIM, "mirror", "--tap", "lo"])


def _quoted(word):
    return f"'{word}'"
