"""`trebuchet build` that is ended takes its tools with it, and what they have started."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from real_tools import SCRIPT

#: A tool that starts a program of its own and waits for it; `pids` has both.
SLOW = """#!/bin/sh
[ "$1" = --version ] && exit
sleep 1000 &
echo $$ $! > {pids}.new
mv {pids}.new {pids}
wait
"""
#: What `trebuchet build` does, with the stages before a tool left out.
BUILDS = {
    "yosys": """
from trebuchet.soc.netlist import synthesise
from trebuchet.soc.place import Placement
synthesise(Placement(folder, "top", 50_000_000))
""",
    "nextpnr-ecp5": """
from trebuchet.soc.place import Placement, place
place(Placement(folder, "top", 50_000_000), [1])
""",
    "make": """
from trebuchet.soc.processes import run_group
run_group(["make"], cwd=folder).check_returncode()
""",
    "amaranth's yosys": """
from trebuchet.soc.processes import children_end_with_us
with children_end_with_us():  # as soc/verilog.py does
    process = subprocess.Popen([str(folder / "tools" / "yosys")])
    process.communicate()
""",
}
PROGRAM = """
import subprocess, sys
from pathlib import Path
from trebuchet.soc.build import locked
folder = Path(sys.argv[1])
with locked(folder / "out"):
{steps}
"""


def _there(pid):
    """A process runs; one that has ended and waits for its parent does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.parametrize("build", BUILDS)
def test_no_tool_goes_on(tmp_path, build, number):
    pids = tmp_path / "pids"
    (tmp_path / "tools").mkdir()
    for tool in ("yosys", "nextpnr-ecp5", "make"):
        path = tmp_path / "tools" / tool
        path.write_text(SLOW.format(pids=pids))
        path.chmod(0o755)
    (tmp_path / "build_top.sh").write_text(SCRIPT)
    (tmp_path / "top.ys").write_text("synth_ecp5 -top top\n")
    (tmp_path / "top.lpf").touch()
    steps = "".join(f"    {line}\n" for line in BUILDS[build].strip().splitlines())
    environment = {**os.environ, "PATH": f"{tmp_path / 'tools'}:{os.environ['PATH']}"}
    command = [sys.executable, "-c", PROGRAM.format(steps=steps), str(tmp_path)]
    log = (tmp_path / "log").open("w+")
    with log, subprocess.Popen(command, env=environment, stderr=log) as process:
        while not pids.exists():
            assert process.poll() is None, (tmp_path / "log").read_text()
            time.sleep(0.05)
        tool, child = map(int, pids.read_text().split())
        assert _there(tool)
        process.send_signal(number)
        process.wait()
    expected = {signal.SIGTERM: 143, signal.SIGHUP: 129, signal.SIGINT: -signal.SIGINT}
    assert process.returncode == expected[number]
    assert not _there(tool)
    if build == "amaranth's yosys":  # starts nothing
        os.kill(child, signal.SIGKILL)
    else:
        assert not _there(child)
