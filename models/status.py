"""The one table of status codes: gateware, firmware, host and docs use these names."""

from enum import IntEnum

__all__ = ["DESCRIPTIONS", "Status"]


class Status(IntEnum):
    """Outcome of a job or a management command; one byte on the wire."""

    OK = 0
    BAD_TYPE = 1
    BAD_LENGTH = 2
    TOO_LARGE = 3
    NO_ROLE = 4
    STOPPED = 5
    ABORTED = 6
    NO_ROOM = 7
    BAD_DATA = 8
    NO_ANSWER = 9
    UNKNOWN_COMMAND = 10
    BAD_ARGUMENT = 11
    TRUNCATED = 12
    BAD_CHECKSUM = 13
    WRONG_BOARD = 14
    FLASH_ERROR = 15
    BUSY = 16
    NO_CONFIG = 17
    NOT_BUILT_IN = 18
    TIMED_OUT = 19
    STALE = 20


#: What each status means and what to do about it, for error messages and docs.
DESCRIPTIONS = {
    Status.OK: "done",
    Status.BAD_TYPE: "the message type is unknown here; send SMP data messages (type 3)",
    Status.BAD_LENGTH: "the role cannot work on a payload of this length; see the role's page",
    Status.TOO_LARGE: "the payload is larger than the receive buffer; send smaller messages",
    Status.NO_ROLE: "no role is built into this slot",
    Status.STOPPED: "the role is off, or has a part of its weights; start it, or load them whole",
    Status.ABORTED: "given up: its session or board went away, or the role was reset; try again",
    Status.NO_ROOM: "the result does not fit the result buffer",
    Status.BAD_DATA: "the role cannot work on what the payload says; see the role's page",
    Status.NO_ANSWER: "the board that should have done it did not reply in time; is it up?",
    Status.UNKNOWN_COMMAND: "there is no such command; `help` lists them",
    Status.BAD_ARGUMENT: "the command does not take this argument; `help COMMAND` shows its form",
    Status.TRUNCATED: "the message ended before its announced length; send it again",
    Status.BAD_CHECKSUM: "the checksum does not fit the contents; pack or send them again",
    Status.WRONG_BOARD: "this image is for another board; pack one for this board",
    Status.FLASH_ERROR: "the flash did not take what was written; see the board's log",
    Status.BUSY: "the board is at work on another request of this kind; try again",
    Status.NO_CONFIG: "no valid configuration block is in flash; `config save` writes one",
    Status.NOT_BUILT_IN: "this board was built without what the request needs",
    Status.TIMED_OUT: "the rest of the message did not come in time; send it again",
    Status.STALE: "the message has another epoch than the board's lease; take a new lease of it",
}
