"""SMP: messages on the wire, the stream decoder under every way to split."""

import random

import pytest
from trebuchet.client import smp
from trebuchet.models.status import DESCRIPTIONS, Status


def random_messages(rng, count):
    kinds = list(smp.MessageType)
    sizes = (0, 1, 3, 4, 8, 9, 255, 256, 5000)
    return [smp.Message(rng.choice(kinds), rng.randbytes(rng.choice(sizes))) for _ in range(count)]


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


def test_decoder_takes_any_reserved_bytes():
    """The last two are an epoch."""
    assert smp.Decoder().feed(b"\x03\xff\xee\xdd\x01\0\0\0z") == [
        smp.Message(smp.MessageType.DATA, b"z", epoch=0xDDEE)
    ]


def test_epoch_bytes():
    message = smp.data_message(1, b"", role=2, epoch=0x1234)
    assert message.pack() == bytes.fromhex("03033412 04000000 01000000")


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
        smp.Decoder(16).feed(smp.HEADER.pack(3, 0, 0, 17))


def test_every_status_has_a_line():
    for status in Status:
        assert smp.describe_status(status) == f"{status.name}: {DESCRIPTIONS[status]}"
    assert smp.describe_status(200) == "status 200, which this version does not know"
