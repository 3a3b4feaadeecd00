"""Simulated time that a test advances itself."""

import fcntl
import mmap
import struct

__all__ = ["HZ", "Simulator"]

HZ = 1000


class Simulator:
    """The other side of the file: what ``sim/harness/progress.cpp`` does."""

    def __init__(self, path, hz=HZ):
        path.write_bytes(struct.pack("=3Q", 0, 0, hz))
        self.path, self.file = path, path.open("r+b")
        self.numbers = memoryview(mmap.mmap(self.file.fileno(), 24)).cast("Q")
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def advance(self, seconds):
        self.numbers[0] += int(seconds * HZ)

    @property
    def seconds(self):
        return self.numbers[0] / HZ

    def end(self):
        fcntl.flock(self.file, fcntl.LOCK_UN)
