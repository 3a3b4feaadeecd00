"""A CPU with a data cache sees what gateware wrote: firmware flushes before it reads.

VexRiscv's data cache writes through and is not coherent. The files that read external memory are
few; one that is new here must flush, or say below why it need not.
"""

import re
from pathlib import Path

import pytest

FIRMWARE = Path(__file__).resolve().parent.parent / "firmware"
#: Functions that read external memory which gateware writes, by file; the read in them.
READERS = {
    "manage.c": ("end_job", "mailbox_put((const uint32_t *)RESULT_BASE"),
    "commands.c": ("peek", "trebuchet_read32(address"),
}
#: Files that name addresses of external memory, and read only what the CPU itself wrote there (or
#: chance contents, before the shell starts).
OWN = {"boot.c", "memory.c"}


def _body(text, function):
    match = re.search(rf"^static \w+ {function}\([^)]*\)\n\{{\n(.*?)^\}}", text, re.M | re.S)
    assert match, function
    return match.group(1)


@pytest.mark.parametrize("name", READERS)
def test_flushes_before_it_reads(name):
    function, read = READERS[name]
    body = _body((FIRMWARE / name).read_text(), function)
    assert 0 <= body.find("flush_cpu_dcache()") < body.find(read)


def test_no_other_file_reads_external_memory():
    named = {
        path.name
        for path in FIRMWARE.glob("*.c")
        if re.search(r"\b(MAIN_RAM_BASE|RESULT_BASE|WORK_BASE)\b", path.read_text())
    }
    assert named == set(READERS) | OWN
