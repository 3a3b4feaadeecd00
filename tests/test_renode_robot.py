"""The Robot Framework suites on the user's Renode, as `trebuchet renode sim --robot` runs them."""

import importlib.util
import subprocess
import sys

import pytest
from trebuchet.models.renode import find_renode

pytestmark = pytest.mark.slow


@pytest.mark.skipif(
    find_renode() is None, reason="Renode is not here; trebuchet doctor says how to get it"
)
@pytest.mark.skipif(
    importlib.util.find_spec("robot") is None,
    reason="Robot Framework is not here; Renode's tests/requirements.txt names its version",
)
def test_robot_suites():
    command = [sys.executable, "-m", "trebuchet.host.cli", "renode", "sim", "--robot"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:]
