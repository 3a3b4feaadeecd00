"""`make demo` as a user types it: the whole way from the command to the picture."""

import re
import subprocess
import time

import pytest

#: Once built, ten minutes of a record must be through in so many seconds.
WALL_SECONDS = 300


@pytest.mark.slow
@pytest.mark.cpu_limit(1500)
def test_make_demo_runs_as_written(root):
    picture = root / "build" / "demo" / "ecg.png"
    picture.unlink(missing_ok=True)
    result = subprocess.run(
        ["make", "demo"], cwd=root, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    output = result.stdout + result.stderr
    assert result.returncode == 0, output
    text = " ".join(output.split())
    assert "byte for byte" in text
    for part in ("beats per class", "confusion matrix", "golden model"):
        assert part in text
    found = re.search(r"(\d+) transactions, ([\d,]+) clock cycles each .* ([\d.]+) s of wall", text)
    assert found, text
    # 10 minutes at 360 Hz are 216,000 samples; a transaction has at most 4,096 of them.
    assert int(found[1]) >= 216_000 / 4096
    assert int(found[2].replace(",", "")) > 4096 / 4
    assert float(found[3]) <= WALL_SECONDS
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert time.time() - picture.stat().st_mtime < 60
