"""SMP: messages on the wire, the stream decoder under every way to split, bad peers."""

import random
import socket
import threading
import time
from contextlib import contextmanager, suppress

import pytest
from simulated_time import Simulator
from trebuchet.host import smp
from trebuchet.models.errors import TrebuchetError
from trebuchet.models.progress import VARIABLE
from trebuchet.models.status import DESCRIPTIONS, Status


def random_messages(rng, count):
    kinds = list(smp.MessageType)
    sizes = (0, 1, 3, 4, 8, 9, 255, 256, 5000)
    return [smp.Message(rng.choice(kinds), rng.randbytes(rng.choice(sizes))) for _ in range(count)]


@contextmanager
def peer(behave):
    """A TCP server whose one connection is handled by ``behave(socket)``."""
    server = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=lambda: behave_and_close(server, behave), daemon=True)
    thread.start()
    try:
        yield server.getsockname()
    finally:
        server.close()
        thread.join(10)


def behave_and_close(server, behave):
    connection, _ = server.accept()
    with connection:
        behave(connection)


def test_data_message_bytes():
    message = smp.data_message(0x04030201, b"\xaa\xbb")
    assert message.pack() == bytes.fromhex("03000000 06000000 01020304 aabb")
    assert smp.parse_data(message.payload) == (0x04030201, b"\xaa\xbb")


def test_response_bytes_both_forms():
    assert smp.response_message(2, 7).pack() == bytes.fromhex("02000000 08000000 02000000 07000000")
    assert smp.response_message(0).pack() == bytes.fromhex("02000000 01000000 00")
    assert smp.parse_response(bytes.fromhex("0200000007000000")) == smp.Response(2, 7)
    assert smp.parse_response(b"\x05") == smp.Response(5, None)


def test_configuration_bytes():
    cores = (smp.Core(0x10, 0x20, 0x30), smp.Core(1, 2, 3))
    configuration = smp.Configuration(32768, 16384, cores, b"rbf!")
    message = configuration.message()
    assert message.payload[:12] == bytes.fromhex("00800000 00400000 02000000")
    assert message.payload[12:16] == b"\x10\0\0\0"
    assert smp.parse_configuration(message.payload) == configuration


def test_bad_payloads_are_explained():
    with pytest.raises(smp.ProtocolError, match="^a data message must .* at least 4 bytes, not 3$"):
        smp.parse_data(b"abc")
    with pytest.raises(smp.ProtocolError, match="^a response must have 1 or 8 bytes, not 2$"):
        smp.parse_response(b"ab")
    with pytest.raises(smp.ProtocolError, match="at least 12 bytes, not 11$"):
        smp.parse_configuration(bytes(11))
    with pytest.raises(smp.ProtocolError, match="of 2 cores must have at least 36 bytes, not 35$"):
        smp.parse_configuration(smp.SIZES.pack(0, 0, 2) + bytes(23))
    with pytest.raises(ValueError, match="^id must be 32 bit unsigned, not 4294967296$"):
        smp.data_message(1 << 32, b"")


@pytest.mark.parametrize("seed", range(5))
def test_decoder_does_not_care_how_the_stream_is_split(seed):
    rng = random.Random(seed)
    sent = random_messages(rng, 40)
    stream = b"".join(message.pack() for message in sent)
    decoder, got, position = smp.Decoder(), [], 0
    while position < len(stream):
        size = rng.choice((1, 2, 7, 8, 9, 1000, 20000))
        got += decoder.feed(stream[position : position + size])
        position += size
    decoder.finish()
    assert got == sent


def test_decoder_ignores_reserved_bytes():
    assert smp.Decoder().feed(b"\x03\xff\xee\xdd\x01\0\0\0z") == [
        smp.Message(smp.MessageType.DATA, b"z")
    ]


@pytest.mark.parametrize("kind", [0, 7, 255])
def test_decoder_rejects_unknown_types(kind):
    decoder = smp.Decoder()
    for _ in range(2):
        with pytest.raises(smp.ProtocolError, match=f"type must be 1 to 6, not {kind}$"):
            decoder.feed(bytes((kind,)) + bytes(7))


@pytest.mark.parametrize("size", [1, 7, 8, 16, 24, 1000])
def test_decoder_gives_what_came_before_garbage(size):
    """The same messages and the same error, however the bytes were split."""
    sent = [smp.response_message(Status.BUSY, 7), smp.data_message(1, b"abc")]
    stream = b"".join(message.pack() for message in sent) + b"HTTP/1.1 400 Bad Request"
    decoder, got = smp.Decoder(), []

    def decode():
        for position in range(0, len(stream), size):
            got.extend(decoder.feed(stream[position : position + size]))
        decoder.finish()

    for _ in range(2):
        with pytest.raises(smp.ProtocolError, match="type must be 1 to 6, not 72$"):
            decode()
        assert got == sent


def test_decoder_bounds_the_payload():
    limit = smp.Message(smp.MessageType.DATA, bytes(16))
    assert smp.Decoder(16).feed(limit.pack()) == [limit]
    with pytest.raises(smp.ProtocolError, match="^an SMP payload must be at most 16 .*, not 17$"):
        smp.Decoder(16).feed(smp.HEADER.pack(3, 0, 17))


def test_every_status_has_a_line():
    for status in Status:
        assert smp.describe_status(status) == f"{status.name}: {DESCRIPTIONS[status]}"
    assert smp.describe_status(200) == "status 200, which this version does not know"


def test_connection_carries_messages_both_ways():
    sent = random_messages(random.Random(11), 30)

    def echo(connection):
        while data := connection.recv(77):
            connection.sendall(data)

    with peer(echo) as (address, port), smp.Connection(address, port, timeout=600) as connection:
        for message in sent:
            connection.send(message)
            assert connection.receive() == message
        connection.socket.shutdown(socket.SHUT_WR)
        assert connection.receive() is None


def test_connection_tells_a_cut_message_from_a_clean_end():
    message = smp.data_message(1, b"abcdef").pack()
    with peer(lambda c: c.sendall(message + message[:-1])) as where, smp.Connection(*where) as c:
        assert c.receive() is not None
        with pytest.raises(smp.ProtocolError, match="inside a message, after 17 bytes of it$"):
            c.receive()


def test_connection_times_out():
    done = threading.Event()
    with peer(lambda c: done.wait(600)) as where, smp.Connection(*where, timeout=0.1) as c:
        with pytest.raises(TrebuchetError, match="sent nothing for 0.1 s$"):
            c.receive()
        done.set()


def test_a_drop_of_data_now_and_then_does_not_keep_a_client():
    """The time-out is for a whole message, not for each piece of it."""
    done = threading.Event()

    def drip(connection):
        connection.sendall(smp.HEADER.pack(6, 0, 60000))
        for _ in range(600):
            if done.wait(0.05):
                return
            connection.sendall(b"x")

    with peer(drip) as where, smp.Connection(*where, timeout=2) as c:
        with pytest.raises(TrebuchetError, match="sent no whole message within 2 s$"):
            c.receive()
        done.set()


def test_a_late_answer_is_not_taken_for_that_to_the_next_message():
    late = threading.Event()

    def answer(connection):
        connection.recv(100)
        late.wait(600)
        with suppress(ConnectionError):
            connection.sendall(smp.data_message(1, b"late").pack())

    with peer(answer) as (address, port), smp.Connection(address, port, timeout=0.1) as c:
        c.send(smp.data_message(1, b""))
        with pytest.raises(TrebuchetError, match="sent nothing for 0.1 s$"):
            c.receive()
        late.set()
        said = f"^{address}:{port} sent nothing for 0.1 s; the connection is closed since then$"
        with pytest.raises(TrebuchetError, match=said):
            c.send(smp.data_message(2, b""))
        with pytest.raises(TrebuchetError, match=said):
            c.receive()


def test_a_refusal_is_received_though_the_peer_hung_up_while_it_was_sent_to():
    """A board refuses by the header, and closes with the payload unread: that is a reset."""
    answers = [smp.data_message(6, b"done"), smp.response_message(Status.TOO_LARGE, 7)]
    hung_up = threading.Event()

    def refuse(connection):
        connection.recv(8)
        connection.sendall(b"".join(message.pack() for message in answers))
        connection.close()
        hung_up.set()

    with peer(refuse) as where, smp.Connection(*where, timeout=600) as c:
        c.send(smp.data_message(7, bytes(100)))
        assert hung_up.wait(600)
        for answer in answers:
            c.send(smp.data_message(8, bytes(100)))
            assert c.receive() == answer
        for use in (c.receive, lambda: c.send(answers[0]), c.receive):
            with pytest.raises(TrebuchetError, match="broke: .*; the connection is closed since"):
                use()


def test_a_refusal_is_received_though_the_peer_takes_no_more():
    done = threading.Event()
    refusal = smp.response_message(Status.TOO_LARGE, 7)

    def refuse(connection):
        connection.recv(8)
        connection.sendall(refusal.pack())
        done.wait(600)

    with peer(refuse) as where, smp.Connection(*where, timeout=2) as c:
        c.send(smp.data_message(7, bytes(1 << 24)))
        assert c.receive() == refusal
        done.set()


def test_what_is_no_answer_is_named_though_the_peer_hung_up():
    hung_up = threading.Event()

    def speak_http(connection):
        connection.recv(8)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        connection.close()
        hung_up.set()

    with peer(speak_http) as where, smp.Connection(*where, timeout=600) as c:
        c.send(smp.data_message(7, bytes(100)))
        assert hung_up.wait(600)
        with pytest.raises(smp.ProtocolError, match="type must be 1 to 6, not 72$"):
            c.send(smp.data_message(8, bytes(100)))


def test_a_peer_that_takes_data_slowly_but_steadily_is_waited_for(tmp_path, monkeypatch):
    simulator = Simulator(tmp_path / "progress")
    monkeypatch.setenv(VARIABLE, str(simulator.path))
    taken = []

    def sip(connection):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
        while data := connection.recv(1 << 16):
            taken.append(data)
            time.sleep(0.01)
            simulator.advance(0.05)

    message = smp.data_message(1, bytes(9 << 17))
    with peer(sip) as where, smp.Connection(*where, timeout=0.3) as c:
        c.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 17)
        begin = simulator.seconds
        c.send(message)
        assert simulator.seconds - begin > 0.6, "the peer is too quick for this test"
        c.socket.shutdown(socket.SHUT_WR)
        c.timeout = 20  # what the kernel has taken is still on its way
        assert c.receive() is None
    assert b"".join(taken) == message.pack()


def test_a_peer_that_takes_nothing_is_named():
    done = threading.Event()
    with peer(lambda c: done.wait(600)) as where, smp.Connection(*where, timeout=0.2) as c:
        with pytest.raises(TrebuchetError, match="took no data for 0.2 s$"):
            c.send(smp.data_message(1, bytes(1 << 24)))
        with pytest.raises(TrebuchetError, match="for 0.2 s; the connection is closed since then$"):
            c.receive()
        done.set()


def test_nobody_there():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(TrebuchetError, match=f"^cannot connect to 127.0.0.1:{port}: .*refused"):
        smp.Connection("127.0.0.1", port)
