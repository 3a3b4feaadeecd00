"""What a board's processor answers, as calls: status, commands, sessions, configuration.

``docs/firmware-manage.md`` has the messages, ``docs/firmware.md`` the commands.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..models.status import Status
from .dispatch import Member, ask_status
from .errors import BoardError, ProtocolError, describe_status, refusal
from .jobs import Batch, Call, Service
from .operation import operation
from .smp import Configuration, MessageType, parse_reply

__all__ = ["MAX_LINE", "MAX_SESSIONS", "Management", "Reply", "ask_board"]

#: Bytes of the longest command.
MAX_LINE = 127
#: Bytes of the longest operand of a job on the management port.
MAX_OPERAND = 1020
#: No board says more.
MAX_REPLY = 1 << 16
_MORE = "more: sessions "
#: No board has more sessions: numbers grow, so a list ends.
MAX_SESSIONS = 1 << 17
#: A board's numbers are of 32 bits.
_DIGITS = 10


@dataclass(frozen=True)
class Reply:
    """What a command said, and its status."""

    status: int
    text: str

    @property
    def good(self) -> bool:
        return self.status == Status.OK

    @property
    def reason(self) -> str:
        """One line that names the status."""
        described = describe_status(self.status)
        name = described.partition(":")[0]
        line = " ".join(self.text.split()).removeprefix("error: ")
        if line.startswith(f"{name}: "):
            return line
        return described if line in ("", name) else f"{name}: {line}"


def encode_command(line: str) -> bytes:
    """A command as it goes to the board."""
    try:
        text = line.encode()
    except UnicodeEncodeError as error:
        # Python keeps bytes that are no UTF-8, of an argument or a line, as lone surrogates.
        raise BoardError(
            f"a command must be UTF-8; its character {error.start + 1} is not"
        ) from error
    if len(text) > MAX_LINE:
        raise BoardError(f"a command must have at most {MAX_LINE} bytes, not {len(text)}")
    return text


class Management:
    """Operations of a single board, for ``Board`` and ``AsyncBoard``."""

    _member: Member

    @operation
    def status(self) -> Call[dict[str, Any]]:
        """The board's state as it reports it: version, uptime, and all counters as ``engines``."""
        state: dict[str, Any] = yield from ask_status(self._member)
        return state

    @operation
    def fetch_roles(self) -> Call[list[str]]:
        """Names of the board's roles by their numbers; asked for once."""
        if self._member.roles is None:
            yield from ask_status(self._member)
        return list(self._member.roles or ())

    @operation
    def counters(self) -> Call[dict[str, int]]:
        """All counters, as ``{"tcp.segments": 12, …}``."""
        state = yield from ask_status(self._member)
        engines = state.get("engines")
        return {
            f"{block}.{name}": value
            for block, counters in (engines if isinstance(engines, dict) else {}).items()
            if isinstance(counters, dict)
            for name, value in counters.items()
        }

    @operation
    def ask(self, line: str) -> Call[Reply]:
        """Have a command carried out; a reply with another status than OK is returned, too."""
        return (yield from ask_board(line))

    @operation
    def command(self, line: str) -> Call[str]:
        """Have a command of the board's console carried out; what it says.

        Raises :class:`~.errors.Refused` if its status is another than OK.
        """
        reply = yield from ask_board(line)
        if not reply.good:
            said = refusal(reply.status, "")
            name = self._member.links[Service.MANAGEMENT].name
            said.args = (f"{name} answered {reply.reason}",)
            raise said
        return reply.text

    @operation
    def events(self) -> Call[list[str]]:
        """The last lines of the board's log, the oldest first."""
        reply = yield from ask_board("log")
        if not reply.good:
            raise refusal(reply.status, f"{self._member.name} refused the command `log`")
        return reply.text.splitlines()

    @operation
    def sessions(self, start: int = 0, limit: int | None = None) -> Call[list[dict[str, Any]]]:
        """The board's TCP sessions by number; one row is our own.

        ``start``: those from this number on. ``limit``: so many at most, None: all. Keys are the
        columns of the firmware's command ``sessions`` (docs/firmware.md): numbers but for
        ``state`` and ``peer``; times in milliseconds, windows in bytes.
        """
        return (yield from _sessions(self._member.name, start, limit))

    @operation
    def work(self, operand: bytes) -> Call[bytes]:
        """Run a job on the board's role by its processor; at most 1,020 bytes."""
        if len(operand) > MAX_OPERAND:
            raise BoardError(
                f"a job of the management port must have at most {MAX_OPERAND} bytes, not "
                f"{len(operand)}; larger ones go to the role's own port: role().call(data)"
            )
        (result,) = yield Batch(None, [operand], service=Service.MANAGEMENT, largest=MAX_REPLY)
        return result

    @operation
    def configure(
        self,
        configuration: Configuration,
        timeout: float | None = None,
        at_role: bool = False,
        role: str | None = None,
    ) -> Call[None]:
        """Configure the node; done when it has said OK.

        ``timeout`` (seconds) in place of the board's; ``at_role``: at the roles' port, where it
        is for the role named ``role``; None: for the board, or without firmware the port's role.
        """
        yield Batch(
            role,
            [configuration.message().payload],
            MessageType.CONFIGURATION,
            service=Service.ROLE if at_role else Service.MANAGEMENT,
            largest=MAX_REPLY,
            timeout=timeout,
        )


def ask_board(line: str) -> Call[Reply]:
    """Have a command carried out, whatever its status."""
    text = encode_command(line)
    service, kind = Service.MANAGEMENT, MessageType.COMMAND
    (payload,) = yield Batch(None, [text], kind, service=service, largest=MAX_REPLY)
    return Reply(*parse_reply(payload))


def _sessions(board: str, start: int, limit: int | None) -> Call[list[dict[str, Any]]]:
    found: list[dict[str, Any]] = []
    following: int | None = start
    least = start
    while following is not None and (limit is None or len(found) < limit):
        reply = yield from ask_board(f"sessions {following}")
        columns, lines, after = _listed(reply, board, following)
        least = max(least, following)
        for row in _rows(board, columns, lines):
            if found and list(row) != list(found[0]):
                raise ProtocolError(f"{board} changed the columns of its list of sessions")
            session = row["session"]
            if not (isinstance(session, int) and least <= session < MAX_SESSIONS):
                raise ProtocolError(
                    f"{board} told of session {str(session)[:80]}; the next one must be "
                    f"from {least} to {MAX_SESSIONS - 1}"
                )
            least = session + 1
            found.append(row)
        following = after
    return found if limit is None else found[:limit]


def _listed(reply: Reply, board: str, start: int) -> tuple[list[str], list[str], int | None]:
    """One answer: columns, lines, and with which session the list goes on, if it does."""
    if reply.status == Status.NOT_BUILT_IN:
        raise BoardError(
            f"{board} cannot tell its sessions: build it with `inspect=True` in its board file"
        )
    if not reply.good:
        raise BoardError(f"{board} answered {reply.reason}")
    heading, *lines = reply.text.splitlines() or [""]
    columns = heading.split()
    if columns[:3] != ["session", "state", "peer"]:
        raise ProtocolError(f"{board} did not answer with a list of sessions")
    if not lines or not lines[-1].startswith(_MORE):
        return columns, lines, None
    after = _value(board, lines.pop().removeprefix(_MORE))
    if not (isinstance(after, int) and start < after < MAX_SESSIONS):
        raise ProtocolError(f"{board} goes on with session {str(after)[:80]} after {start}")
    return columns, lines, after


def _rows(name: str, columns: list[str], lines: list[str]) -> Iterator[dict[str, Any]]:
    """Sessions in one answer."""
    for line in lines:
        words = line.split()
        if len(words) != len(columns):
            raise ProtocolError(f"{name} told of a session in {len(words)} words: {line[:80]!r}")
        yield {column: _value(name, word) for column, word in zip(columns, words, strict=True)}


def _value(name: str, word: str) -> int | str:
    """A figure as a number; Python itself refuses to read one of thousands of digits."""
    if not word.isdecimal():
        return word
    if len(word) > _DIGITS:
        raise ProtocolError(f"{name} told of a session with a number of {len(word)} digits")
    return int(word)
