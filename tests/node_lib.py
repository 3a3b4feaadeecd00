"""The firmware's node manager, compiled for this machine, and a mailbox's part played to it."""

import ctypes
import subprocess

from firmware_host import generated
from trebuchet.models.status import Status

AWAIT, RESPOND, RUN, WORK, CONFIGURE = range(5)
HEADER_TAG, CONFIGURATION_TAG, DATA_TAG, COMMAND_TAG = range(4)

u8, u32, size_t = ctypes.c_uint8, ctypes.c_uint32, ctypes.c_size_t


class Limits(ctypes.Structure):
    _fields_ = [
        ("cores", ctypes.POINTER(u32)),
        ("count", ctypes.c_uint),
        ("piece", u32),
        ("image", u32),
    ]


class Plan(ctypes.Structure):
    _fields_ = [(n, u32) for n in ("input_size", "output_size", "cores", "image_length")]
    _fields_ += [("benchmark", ctypes.c_bool)]


class Node(ctypes.Structure):
    _fields_ = [
        ("limits", Limits),
        ("plan", Plan),
        ("busy", ctypes.c_bool),
        ("owner", u32),
        ("since", u32),
        ("lease", u32),
        ("size", u32),
        ("left", u32),
        ("refusal", u8),
        ("row", u8 * 12),
        ("filled", ctypes.c_uint),
        ("rows", u32),
        ("rows_due", u32),
        ("stored", u32),
        ("next", Plan),
    ]


class Piece(ctypes.Structure):
    _fields_ = [
        ("session", u32),
        ("tag", ctypes.c_int),
        ("missing", ctypes.c_uint8),
        ("data", ctypes.c_void_p),
        ("length", size_t),
        ("now", u32),
        ("lease", u32),
        ("stale", ctypes.c_bool),
    ]


class Step(ctypes.Structure):
    _fields_ = [
        ("action", ctypes.c_int),
        ("status", u8),
        ("close", ctypes.c_bool),
        ("tag", ctypes.c_int),
        ("expect", u32),
        ("id", u32),
        ("data", ctypes.c_void_p),
        ("length", size_t),
        ("store", ctypes.c_void_p),
        ("store_length", size_t),
        ("store_at", u32),
        ("note", ctypes.c_char_p),
    ]


def compile_node(root, folder):
    path = folder / "node.so"
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-fPIC", "-shared"]
    flags += ["-fsanitize=undefined", "-fno-sanitize-recover=undefined", "-static-libubsan"]
    flags += ["-I", generated(folder), root / "firmware" / "node.c"]
    subprocess.run(["gcc", *flags, "-o", path], check=True)
    lib = ctypes.CDLL(str(path))
    lib.node_take.argtypes = [ctypes.POINTER(t) for t in (Node, Piece, Step)]
    lib.node_configured.argtypes = [ctypes.POINTER(Node), u8, ctypes.POINTER(Step)]
    return lib


class NodeBench:
    """A node with ``cores``; what it does lands in ``done``: tuples that begin with the action."""

    def __init__(self, lib, cores=(0xF0001000,), piece=1024, image=1000):
        self.lib, self.node, self.now = lib, Node(), 0
        self.lease, self.guard = 0, False
        self.cores = (u32 * max(1, len(cores)))(*cores)
        self.memory = bytearray(image)
        limits = Limits(self.cores, len(cores), piece, image)
        lib.node_start(ctypes.byref(self.node), ctypes.byref(limits))
        self.due = {}  # by session: (tag, bytes) that it was asked for
        self.done, self.notes = [], []
        self.verdict = 0  # status of what a configuration asks for

    def refuses(self, tag, data):
        """Whether the guard refuses a header with its epoch, or data."""
        if not self.guard or tag not in (HEADER_TAG, DATA_TAG):
            return False
        epoch = int.from_bytes(data[2:4], "little") if tag == HEADER_TAG and len(data) == 8 else 0
        return epoch == 0 or epoch != self.lease

    def take(self, session, data, missing=Status.OK):
        """Show one request; returns False once the connection is to be closed."""
        tag, _ = self.due.pop(session, (HEADER_TAG, 8))
        buffer = ctypes.create_string_buffer(data, max(1, len(data)))
        base = ctypes.addressof(buffer)
        stale = self.refuses(tag, data)
        piece = Piece(session, tag, missing, base, len(data), self.now, self.lease, stale)
        step = Step()
        self.lib.node_take(*map(ctypes.byref, (self.node, piece, step)))
        if step.note:
            self.notes.append(step.note.decode())
        if step.store_length:
            at = step.store - base
            assert 0 <= at <= at + step.store_length <= len(data)
            assert step.store_at + step.store_length <= len(self.memory)
            self.memory[step.store_at : step.store_at + step.store_length] = data[
                at : at + step.store_length
            ]
        given = b""
        if step.action in (RUN, WORK) and step.length:
            at = step.data - base
            assert 0 <= at <= at + step.length <= len(data)
            given = data[at : at + step.length]
        return self._act(session, step, given)

    def _act(self, session, step, given):
        if step.action == AWAIT:
            assert 0 < step.expect <= self.node.limits.piece
            assert not step.close
            self.due[session] = (step.tag, step.expect)
        elif step.action == RESPOND:
            self.done.append((RESPOND, step.status, step.id))
        elif step.action == RUN:
            self.done.append((RUN, given))
        elif step.action == WORK:
            self.done.append((WORK, step.id, given))
        else:
            plan = self.node.next
            image = bytes(self.memory[: plan.image_length])
            self.done.append((CONFIGURE, plan.input_size, plan.output_size, plan.cores, image))
            self.lib.node_configured(ctypes.byref(self.node), self.verdict, ctypes.byref(step))
            return self._act(session, step, b"")
        return not step.close

    def feed(self, stream, session=0, fin=True):
        """A whole connection, cut as the node asks; returns what is left of it."""
        while stream:
            _, want = self.due.get(session, (HEADER_TAG, 8))
            data, stream = stream[:want], stream[want:]
            if len(data) < want and not fin:
                return data
            if not self.take(session, data, Status.TRUNCATED if len(data) < want else Status.OK):
                return stream
        if fin and session in self.due:
            self.take(session, b"", Status.TRUNCATED)
        return b""
