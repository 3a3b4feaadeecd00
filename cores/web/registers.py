"""What the web service tells the CPU, and is told; how they are used: ``cores/web/service.py``."""

from ..csr import Register, RegisterBlock, counter
from ..memory import ADDR_WIDTH

__all__ = ["web_block"]


def web_block(base=0, index=0, buckets=1):
    """The registers; the parameters are what they are after reset, as for an image."""
    return RegisterBlock(
        "web",
        (
            Register("base", "rw", ADDR_WIDTH, "address of the image of the store", base),
            Register("index", "rw", ADDR_WIDTH, "address of its first bucket", index),
            Register("mask", "rw", ADDR_WIDTH, "number of its buckets - 1", buckets - 1),
            counter("requests", "request heads that were answered"),
            counter("found", "of these: answered with an object (200)"),
            counter("not_modified", "of these: the client has it already (304)"),
            counter("not_found", "of these: no such path (404)"),
            counter("rejected", "of these: no valid request, or none that is served"),
            counter("unusual", "of these: legal, but none that gateware answers (503)"),
            counter("timeouts", "heads that did not come to their end in time (408)"),
        ),
        "files over HTTP",
    )
