"""What the web service tells the CPU, and is told; how they are used: ``cores/web/service.py``."""

from ..csr import Register, RegisterBlock, counter
from ..memory import ADDR_WIDTH

__all__ = ["web_block"]


def web_block(image=None, more=()):
    """Return the registers; ``image``: (address, index, buckets) of one that is served from reset.

    ``more``: those of :mod:`.desk`, if firmware answers what gateware does not.
    """
    taken = (counter("by_firmware", "of these: answered by firmware"),) if more else ()
    base, index, buckets = image or (0, 0, 1)
    return RegisterBlock(
        "web",
        (
            Register("enable", "rw", 1, "1: requests are answered", int(image is not None)),
            Register("base", "rw", ADDR_WIDTH, "address of the image of the store", base),
            Register("index", "rw", ADDR_WIDTH, "address of its first bucket", index),
            Register("mask", "rw", ADDR_WIDTH, "number of its buckets - 1", buckets - 1),
            Register("switch", "stb", 1, "1: answer from the image that the three say"),
            Register("switching", "ro", 1, "requests of the image before are being looked up"),
            Register("held", "ro", 20, "responses of the image before that are not acknowledged"),
            counter("requests", "request heads that were answered"),
            counter("found", "of these: answered with an object (200)"),
            counter("not_modified", "of these: the client has it already (304)"),
            counter("not_found", "of these: no such path (404)"),
            counter("rejected", "of these: no valid request, or none that is served"),
            counter("unusual", "of these: legal, but none that gateware answers (503)"),
            *taken,
            counter("timeouts", "heads that did not come to their end in time (408)"),
            counter("refused", "connections closed without an answer, as there is no image"),
            *more,
        ),
        "files over HTTP",
    )
