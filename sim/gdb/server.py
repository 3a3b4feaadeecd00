"""A GDB server for the simulated board: ``target remote :PORT`` (GDB manual, appendix E).

One debugger at a time. When it asks for the CPU's state the CPU halts; when it detaches, kills or
goes away, its breakpoints are removed and the CPU goes on. Only the CPU halts: the board's clock,
its network and its timers run on, as they would on a real one.

Errors are answered as ``E`` with an errno in hexadecimal: 07 a packet is too long, 0e there is no
memory, 16 a command or its arguments are wrong, 1c no hardware breakpoint is free, 10 the CPU runs.
"""

import contextlib
import errno
import logging
import select
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...models.errors import TrebuchetError
from ...models.progress import Simulation
from .packets import MAX_PACKET, Event, PacketStream, escape, unescape
from .port import DebugPort, PortClosed
from .target import CSRS, PC, MemoryMap, OutOfMemoryMap, Stop, Target, TargetError

__all__ = ["GdbServer", "Session", "target_description"]

_log = logging.getLogger(__name__)
_SIGINT, _SIGTRAP = 2, 5
#: GDB's numbers of the CSRs begin behind those of x0 to x31, pc and the floating-point registers.
_FIRST_CSR = 65
_FEATURES = (b"qXfer:features:read+", b"swbreak+", b"hwbreak+", b"QStartNoAckMode+")
_HELP = """\
monitor reset    reset the board; the CPU stops before its first instruction.
                 GDB then needs: maintenance flush register-cache
monitor status   is the CPU running, and which breakpoints are set
monitor help     this text
"""


def target_description() -> bytes:
    """The CPU's registers as GDB's target description (GDB manual, appendix G)."""
    kinds = {1: "code_ptr", 2: "data_ptr", 3: "data_ptr", 4: "data_ptr", 8: "data_ptr"}
    rows = [
        f'<reg name="x{n}" bitsize="32" type="{kinds.get(n, "int")}" regnum="{n}"/>'
        for n in range(32)
    ]
    rows.append(f'<reg name="pc" bitsize="32" type="code_ptr" regnum="{PC}"/>')
    csrs = [
        f'<reg name="{name}" bitsize="32" type="int" regnum="{_FIRST_CSR + n}" save-restore="no"/>'
        for name, n in CSRS.items()
    ]
    text = f"""<?xml version="1.0"?>
<!DOCTYPE target SYSTEM "gdb-target.dtd">
<target version="1.0">
<architecture>riscv:rv32</architecture>
<feature name="org.gnu.gdb.riscv.cpu">
{chr(10).join(rows)}
</feature>
<feature name="org.gnu.gdb.riscv.csr">
{chr(10).join(csrs)}
</feature>
</target>
"""
    return text.encode()


class _Refused(Exception):
    """A packet that is answered with an error."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def _numbers(text: bytes, separators: bytes) -> list[int]:
    """``b"10,4"`` with separators ``b","`` as ``[16, 4]``."""
    for separator in separators:
        text = text.replace(bytes((separator,)), b" ", 1)
    words = text.split(b" ")
    if len(words) != len(separators) + 1 or not all(0 < len(w) <= 8 for w in words):
        raise _Refused(errno.EINVAL)
    try:
        return [int.from_bytes(bytes.fromhex(w.decode().zfill(8)), "big") for w in words]
    except ValueError:
        raise _Refused(errno.EINVAL) from None


def _from_hex(text: bytes, length: int | None = None) -> bytes:
    try:
        data = bytes.fromhex(text.decode("ascii"))
    except ValueError:
        raise _Refused(errno.EINVAL) from None
    if b" " in text or (length is not None and len(data) != length):
        raise _Refused(errno.EINVAL)
    return data


class Session:
    """One debugger's packets, each with its answer.

    Parameters
    ----------
    target : Target
        The CPU.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        self.attached = False
        self.over = False
        #: The CPU goes on, and the debugger waits for a stop.
        self.waiting = False
        self.acknowledge = True
        self._description = target_description()
        self._commands: dict[bytes, Callable[[bytes], bytes | None]] = {
            b"?": self._why,
            b"g": self._read_all,
            b"G": self._write_all,
            b"p": self._read_one,
            b"P": self._write_one,
            b"m": self._read_memory,
            b"M": self._write_hex,
            b"X": self._write_binary,
            b"c": lambda rest: self._resume(rest, step=False),
            b"s": lambda rest: self._resume(rest, step=True),
            b"Z": lambda rest: self._breakpoint(rest, insert=True),
            b"z": lambda rest: self._breakpoint(rest, insert=False),
            b"D": self._detach,
            b"k": self._kill,
            b"H": lambda _: b"OK",
            b"T": lambda _: b"OK",
            b"q": self._query,
            b"Q": self._set,
        }

    def answer(self, packet: bytes) -> bytes | None:
        """The answer to a packet: empty if it is unknown; None if there is none yet, or ever."""
        command = self._commands.get(packet[:1])
        if command is None:
            return b""
        try:
            return command(packet[1:])
        except _Refused as refused:
            code = refused.code
        except OutOfMemoryMap:
            code = errno.EFAULT
        except TargetError:
            code = errno.EBUSY if self.target.running else errno.EINVAL
        return b"E%02x" % code

    # --- stopping and going on -------------------------------------------------------------------

    def stopped(self, stop: Stop, signal: int = _SIGTRAP) -> bytes:
        """The stop reply of a CPU that has halted."""
        self.waiting = False
        reason = self.target.breakpoint_at(self.target.read_register(PC))
        if stop.breakpoint and reason:
            return b"T%02x%s:;" % (_SIGTRAP, reason.encode())
        return b"S%02x" % (_SIGTRAP if stop.breakpoint else signal)

    def interrupt(self) -> bytes | None:
        """The user's Ctrl-C."""
        if not self.waiting:
            return None
        return self.stopped(self.target.interrupt(), _SIGINT)

    def leave(self) -> None:
        """The debugger has gone."""
        if self.waiting:
            self.target.interrupt()
            self.waiting = False
        if self.attached:
            self.target.detach()
        self.attached = False
        self.over = True

    def _why(self, _: bytes) -> bytes:
        self.attached = True
        if self.target.running:
            self.target.halt()
        return b"S%02x" % _SIGTRAP

    def _resume(self, rest: bytes, step: bool) -> None:
        if rest:
            self.target.write_register(PC, _numbers(rest, b"")[0])
        self.target.resume(step)
        self.waiting = True

    def _detach(self, _: bytes) -> bytes:
        self.leave()
        return b"OK"

    def _kill(self, _: bytes) -> None:
        self.leave()

    # --- registers and memory --------------------------------------------------------------------

    def _read_all(self, _: bytes) -> bytes:
        values = (self.target.read_register(n) for n in range(PC + 1))
        return b"".join(v.to_bytes(4, "little") for v in values).hex().encode()

    def _write_all(self, rest: bytes) -> bytes:
        data = _from_hex(rest, 4 * (PC + 1))
        for n in range(PC + 1):
            self.target.write_register(n, int.from_bytes(data[4 * n : 4 * n + 4], "little"))
        return b"OK"

    def _csr(self, number: int) -> int:
        csr = number - _FIRST_CSR
        if csr not in CSRS.values():
            raise _Refused(errno.EINVAL)
        return csr

    def _read_one(self, rest: bytes) -> bytes:
        (number,) = _numbers(rest, b"")
        if number <= PC:
            value = self.target.read_register(number)
        else:
            value = self.target.read_csr(self._csr(number))
        return value.to_bytes(4, "little").hex().encode()

    def _write_one(self, rest: bytes) -> bytes:
        name, _, text = rest.partition(b"=")
        (number,) = _numbers(name, b"")
        value = int.from_bytes(_from_hex(text, 4), "little")
        if number <= PC:
            self.target.write_register(number, value)
        else:
            self.target.write_csr(self._csr(number), value)
        return b"OK"

    def _read_memory(self, rest: bytes) -> bytes:
        address, length = _numbers(rest, b",")
        # A shorter answer than asked for is allowed.
        return self.target.read_memory(address, min(length, MAX_PACKET // 2)).hex().encode()

    def _write_hex(self, rest: bytes) -> bytes:
        head, _, text = rest.partition(b":")
        address, length = _numbers(head, b",")
        self.target.write_memory(address, _from_hex(text, length))
        return b"OK"

    def _write_binary(self, rest: bytes) -> bytes:
        head, _, text = rest.partition(b":")
        address, length = _numbers(head, b",")
        data = unescape(text)
        if len(data) != length:
            raise _Refused(errno.EINVAL)
        self.target.write_memory(address, data)
        return b"OK"

    def _breakpoint(self, rest: bytes, insert: bool) -> bytes:
        kind, address, size = _numbers(rest, b",,")
        if kind > 1:
            return b""  # no watchpoints
        if size != 4:
            raise _Refused(errno.EINVAL)
        actions = (
            (self.target.remove_software_breakpoint, self.target.insert_software_breakpoint),
            (self.target.remove_hardware_breakpoint, self.target.insert_hardware_breakpoint),
        )
        if kind == 1 and insert and not self.target.has_hardware_breakpoint(address):
            raise _Refused(errno.ENOSPC)
        actions[kind][insert](address)
        return b"OK"

    # --- questions and settings ------------------------------------------------------------------

    def _query(self, rest: bytes) -> bytes:
        name, _, arguments = rest.partition(b":")
        if name == b"Supported":
            return (
                b"PacketSize=%x;qXfer:features:read+;swbreak+;hwbreak+;QStartNoAckMode+"
                % MAX_PACKET
            )
        if name == b"Xfer":
            return self._transfer(arguments)
        if rest.startswith(b"Rcmd,"):
            return (
                self._monitor(_from_hex(rest[5:]).decode(errors="replace")).encode().hex().encode()
            )
        simple = {
            b"Attached": b"1",
            b"C": b"QC1",
            b"fThreadInfo": b"m1",
            b"sThreadInfo": b"l",
            b"Symbol": b"OK",
        }
        return simple.get(name, b"")

    def _transfer(self, arguments: bytes) -> bytes:
        prefix = b"features:read:target.xml:"
        if not arguments.startswith(prefix):
            return b"E00"  # an annex that there is not
        offset, length = _numbers(arguments[len(prefix) :], b",")
        piece = self._description[offset : offset + min(length, MAX_PACKET // 2)]
        return (b"m" if offset + len(piece) < len(self._description) else b"l") + escape(piece)

    def _monitor(self, command: str) -> str:
        words = command.split()
        if words == ["reset"]:
            self.target.reset()
            return "The board was reset; the CPU has stopped before its first instruction.\n"
        if words == ["status"]:
            return self.target.describe() + "\n"
        if words in ([], ["help"]):
            return _HELP
        return f"There is no command {command.strip()!r}.\n{_HELP}"

    def _set(self, rest: bytes) -> bytes:
        if rest == b"StartNoAckMode":
            self.acknowledge = False
            return b"OK"
        return b""


class GdbServer:
    """Serves debuggers on a TCP port of this machine, in a thread of its own; a context manager.

    Parameters
    ----------
    socket_path : path
        The harness's debug socket.
    csr_json : path
        The board's map of memories.
    port : int
        TCP port on 127.0.0.1; 0 for any. :attr:`port` says which.
    simulation : Simulation or None
        Progress of the simulator, which limits the waits for it.
    """

    def __init__(
        self,
        socket_path: Path,
        csr_json: Path,
        port: int = 0,
        simulation: Simulation | None = None,
    ) -> None:
        self._memory_map = MemoryMap.load(csr_json)
        with contextlib.ExitStack() as stack:
            self._stop_reader, self._stop_writer = map(stack.enter_context, socket.socketpair())
            try:
                self._listener = stack.enter_context(socket.create_server(("127.0.0.1", port)))
            except OSError as error:
                reason = f"GDB cannot be served on port {port}: {error.strerror}"
                raise TrebuchetError(reason) from None
            self.port: int = self._listener.getsockname()[1]
            self._debug_port = stack.enter_context(DebugPort(socket_path, simulation))
            self._resources = stack.pop_all()
        self._thread = threading.Thread(target=self._serve, name="gdb", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with contextlib.suppress(PortClosed, OSError):
            while True:
                ready, _, _ = select.select([self._listener, self._stop_reader], [], [])
                if self._stop_reader in ready:
                    return
                peer, _ = self._listener.accept()
                with peer:
                    try:
                        self._serve_one(peer)
                    except PortClosed:
                        raise
                    except Exception:  # the next debugger is not to suffer for it
                        _log.exception("the debugger's connection is closed after an error")

    def _serve_one(self, peer: socket.socket) -> None:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        stream = PacketStream(peer)
        session = Session(Target(self._debug_port, self._memory_map))
        try:
            while not session.over:
                sources: list[Any] = [stream, self._stop_reader, self._listener]
                sources += [self._debug_port] if session.waiting else []
                ready, _, _ = select.select(sources, [], [])
                if self._stop_reader in ready:
                    return
                if self._debug_port in ready:
                    stream.send(session.stopped(session.target.stopped()))
                if stream in ready:
                    self._take(stream, session)
                elif self._listener in ready:
                    # One debugger at a time; and the present one is not about to go.
                    self._listener.accept()[0].close()
        except OSError:
            pass  # the debugger has gone
        finally:
            session.leave()

    def _take(self, stream: PacketStream, session: Session) -> None:
        for event in stream.feed():
            if event is Event.CLOSED:
                session.over = True
                return
            answer: bytes | None
            if event is Event.TOO_LONG:
                answer = b"E%02x" % errno.E2BIG
            elif event is Event.INTERRUPT:
                answer = session.interrupt()
            elif session.waiting:
                continue  # nothing but Ctrl-C may come now
            else:
                assert isinstance(event, bytes)
                answer = session.answer(event)
            if answer is not None:
                stream.send(answer)
            stream.acknowledge = session.acknowledge

    def close(self) -> None:
        """Send the debugger away, and let the CPU go on."""
        self._stop_writer.send(b"x")
        self._thread.join(timeout=10)
        self._resources.close()

    def __enter__(self) -> "GdbServer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
