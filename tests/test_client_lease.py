"""Epochs of leases in the client library: what messages carry, and what becomes of stale ones."""

import pytest
from test_client_dispatch import call
from trebuchet.client import Board, BoardError, Pool, Stale
from trebuchet.client.dispatch import Dispatcher
from trebuchet.client.jobs import Batch, Service
from trebuchet.client.owner import make_member
from trebuchet.client.smp import Decoder, MessageType
from trebuchet.models.smp_framing import data_message, error_message
from trebuchet.models.status import Status


class Boards:
    """Boards with a guard, played by the test: ``leases`` are their epochs, or None."""

    def __init__(self, *addresses, leases, retries=2):
        self.members = [make_member(a, roles=["echo"], in_flight=2) for a in addresses]
        self.dispatcher = Dispatcher(self.members, retries)
        self.links = [member.links[Service.ROLE] for member in self.members]
        self.leases = list(leases)
        self.seen = [[] for _ in self.links]  # epochs of messages

    def run(self, generator):
        """A call until it is done."""
        task = self.dispatcher.start(generator)
        self.dispatcher.poll()
        while not task.done:
            for link in self.dispatcher.openable():
                link.opening()
                link.opened()
                self.dispatcher.poll()
            for link, lease, seen in zip(self.links, self.leases, self.seen, strict=True):
                self.serve(link, lease, seen)
        return task.outcome()

    def serve(self, link, lease, seen):
        sent = b"".join(map(bytes, link.session.outgoing))
        link.sent(len(sent))
        for message in Decoder().feed(sent):
            seen.append(message.epoch)
            ident = int.from_bytes(message.payload[:4], "little")
            good = lease in (None, message.epoch)
            answer = data_message(ident, message.payload[4:])
            link.received(answer if good else error_message(Status.STALE, ident))
            self.dispatcher.poll()


def test_a_stale_job_goes_to_another_board():
    """Even if it is not pure: it was not worked on. The stale board gets no job any more."""
    boards = Boards("a:1@17", "b:1@3", leases=(18, 3))
    assert boards.run(call(6, pure=False)) == [bytes([k]) for k in range(6)]
    assert 1 <= len(boards.seen[0]) <= 2
    boards.run(call(6, pure=False))
    assert set(boards.seen[0]) == {17}
    assert len(boards.seen[0]) <= 2
    assert set(boards.seen[1]) == {3}


def test_a_stale_epoch_is_not_tried_again():
    boards = Boards("a:1@17", leases=(18,))
    for _ in range(2):
        with pytest.raises(Stale, match=r"^a:1 refused message 1: STALE: .*lease"):
            boards.run(call(1))
    assert boards.seen == [[17]]
    lease = boards.members[0].lease
    lease.epoch, lease.stale = 18, None
    assert boards.run(call(2)) == [b"\0", b"\1"]
    assert boards.seen == [[17, 18, 18]]


def test_no_board_of_the_pool_has_a_lease():
    boards = Boards("a:1@17", "b:1@3", leases=(18, 4), retries=5)
    with pytest.raises(
        Stale, match="no board of the pool takes the job: a:1 .*STALE.*; b:1 .*STALE"
    ):
        boards.run(call(1))


def test_without_an_epoch_a_refusal_is_an_error_like_others():
    """A job server may have another lease with the next job."""
    boards = Boards("a:1", leases=(18,))
    with pytest.raises(Stale):
        boards.run(call(1))
    boards.leases = [None]
    assert boards.run(call(1)) == [b"\0"]
    assert boards.seen == [[0, 0]]


def test_configurations_carry_the_epoch():
    member = make_member("a:1", epoch=0x1234)
    link = member.links[Service.MANAGEMENT]
    dispatcher = Dispatcher([member], 0)

    def configure():
        yield Batch(None, [b"abc"], MessageType.CONFIGURATION, service=Service.MANAGEMENT)

    dispatcher.start(configure())
    dispatcher.poll()
    link.opening()
    link.opened()
    dispatcher.poll()
    sent = b"".join(map(bytes, link.session.outgoing))
    assert sent == bytes.fromhex("01003412 03000000") + b"abc"


def test_epochs_of_addresses_and_options():
    with Board("10.0.0.2@17") as board:
        assert board.epoch == 17
        board.epoch = 18
        assert board.epoch == 18
        with pytest.raises(ValueError, match="An epoch must be 1 to 65535, not 0"):
            board.epoch = 0
    with Board("10.0.0.2", epoch=9) as board:
        assert board.epoch == 9
    with Board("10.0.0.2") as board:
        assert board.epoch == 0
    with Pool(["10.0.0.2@4", "10.0.0.3"], epoch=5) as pool:
        assert [member.lease.epoch for member in pool._dispatcher.members] == [4, 5]
    for address, said in (
        ("10.0.0.2@", "the epoch of 10.0.0.2 must be a number, not ''"),
        ("10.0.0.2@x", "the epoch of 10.0.0.2 must be a number, not 'x'"),
        ("10.0.0.2@65536", "10.0.0.2: An epoch must be 1 to 65535, not 65536"),
        ("10.0.0.2@0", "10.0.0.2: An epoch must be 1 to 65535, not 0"),
    ):
        with pytest.raises(BoardError, match=said):
            Board(address)
