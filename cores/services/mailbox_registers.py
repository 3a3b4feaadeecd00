"""What the mailbox tells the CPU, and is told; how they are used: ``cores/services/mailbox.py``."""

from ..csr import Field, Register, RegisterBlock, counter
from ..tcp.service import SESSION_WIDTH

__all__ = ["MAILBOX_BLOCK"]

MAILBOX_BLOCK = RegisterBlock(
    "mailbox",
    (
        Register(
            "status",
            "ro",
            7,
            "state of the mailbox",
            fields=(
                Field("pending", 0, 1, "a request waits for the CPU"),
                Field("partial", 1, 1, "the request ends before its end: see the data sheet"),
                Field("gone", 2, 1, "its connection is over; whatever is sent is dropped"),
                Field("busy", 3, 1, "a response is on its way to memory"),
                Field("tag", 4, 2, "`expect.tag` as it was when this request was asked for"),
                Field("late", 6, 1, "it is partial, and the rest has not come in time"),
            ),
        ),
        Register("session", "ro", SESSION_WIDTH, "session of the pending request"),
        Register("request_length", "ro", 11, "bytes of the pending request"),
        Register("rx_index", "rw", 8, "which word of the request rx_data shows"),
        Register("rx_data", "ro", 32, "four bytes of the request, the first in bits 7..0"),
        Register("tx_data", "rw", 32, "four bytes of the response, the first in bits 7..0"),
        Register("tx_write", "stb", 1, "write 1: append tx_data to the response"),
        Register(
            "send",
            "stb",
            32,
            "send the response",
            fields=(
                Field("length", 0, 13, "its bytes; more than 4,096 are taken as 4,096"),
                Field("close", 16, 1, "close the connection after it"),
                Field("go", 31, 1, "must be 1"),
            ),
        ),
        Register("drop", "stb", 1, "write 1: reset the connection of the pending request"),
        Register(
            "expect",
            "rw",
            13,
            "what the session's next request is; taken with `send`",
            fields=(
                Field("length", 0, 11, "its bytes; 0: text or a header, as its first byte says"),
                Field("tag", 11, 2, "comes back as `status.tag`"),
            ),
        ),
        Register("irq_enable", "rw", 1, "1: interrupt while a request is pending"),
        counter("requests", "requests shown to the CPU"),
        counter("responses", "responses given to the TCP engine"),
        counter("dropped", "requests dropped, or whose connection ended before the response"),
    ),
    "requests on a TCP port that the CPU answers",
)
