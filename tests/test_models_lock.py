"""File locks: held by one at a time, in this process and others, waited for or tried."""

import subprocess
import sys

from trebuchet.models.lock import FileLock

HOLDER = """
import sys
from pathlib import Path
from trebuchet.models.lock import FileLock
with FileLock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
"""


def test_a_lock_is_tried(tmp_path):
    """Two in one process are as two processes."""
    path = tmp_path / "locks" / "a"
    one, two = FileLock(path), FileLock(path)
    assert one.try_enter()
    assert not two.try_enter()
    one.release()
    assert two.try_enter()
    two.release()
    with one:
        assert not two.try_enter()
    assert two.try_enter()
    two.release()


def test_a_lock_goes_with_its_process(tmp_path):
    path = tmp_path / "a"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout.readline() == b"held\n"
        assert not FileLock(path).try_enter()
        holder.kill()
        holder.wait()
        with FileLock(path):
            pass
