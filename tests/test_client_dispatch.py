"""The dispatcher without I/O: which link gets which job, when links open and close. No clock."""

from types import SimpleNamespace

import pytest
from trebuchet.client import BadData, Batch, ConnectionLost, TooLarge, aio, blocking
from trebuchet.client.dispatch import Dispatcher
from trebuchet.client.jobs import Service
from trebuchet.client.link import LinkState
from trebuchet.client.owner import make_member
from trebuchet.client.smp import MessageType
from trebuchet.models import progress
from trebuchet.models.smp_framing import data_message, error_message
from trebuchet.models.status import Status


def call(count=1, pure=True):
    return (yield Batch(None, [bytes([k]) for k in range(count)], pure=pure))


class Boards:
    """Links that the test opens, answers and loses itself."""

    def __init__(self, count, in_flight=2, retries=2):
        members = [
            make_member(f"board{k}", roles=["echo"], in_flight=in_flight) for k in range(count)
        ]
        self.dispatcher = Dispatcher(members, retries)
        self.links = [member.links[Service.ROLE] for member in members]
        self.waiting = {link: [] for link in self.links}
        self.given = {link: 0 for link in self.links}

    def start(self, generator):
        task = self.dispatcher.start(generator)
        self.dispatcher.poll()
        return task

    def open(self):
        for link in self.dispatcher.openable():
            link.opening()
            link.opened()
        self.dispatcher.poll()

    def take(self):
        """What the links send, as the boards see it: IDs of messages."""
        for link in self.links:
            sent = b""
            while link.session.outgoing:
                piece = bytes(link.session.outgoing[0])
                link.sent(len(piece))
                sent += piece
            while sent:
                size = int.from_bytes(sent[4:8], "little")
                self.waiting[link].append(
                    (int.from_bytes(sent[8:12], "little"), sent[12 : 8 + size])
                )
                self.given[link] += 1
                sent = sent[8 + size :]

    def answer(self, link):
        """The oldest message of a link."""
        number, data = self.waiting[link].pop(0)
        link.received(data_message(number, data))
        self.dispatcher.poll()
        self.take()


def opened(*arguments, **options):
    """All links are open, and have had an answer."""
    boards = Boards(*arguments, **options)
    task = boards.start(call(2 * len(boards.links)))
    boards.open()
    boards.take()
    while not task.done:
        boards.answer(next(link for link in boards.links if boards.waiting[link]))
    boards.given = {link: 0 for link in boards.links}
    return boards


def test_a_link_that_opens_again_is_left_alone():
    """Whatever happens meanwhile on others: its session is still that of the lost connection."""
    boards = opened(2)
    lost, other = boards.links
    task = boards.start(call(20))
    boards.take()
    lost.failed("gone")
    lost.forgive()  # it need not rest
    boards.dispatcher.poll()
    assert boards.dispatcher.openable() == [lost]
    lost.opening()
    for _ in range(3):
        boards.answer(other)
        assert lost.state == LinkState.OPENING
    lost.opened()
    boards.dispatcher.poll()
    boards.take()
    assert lost.session.in_flight == 2
    assert not task.done


def test_a_status_is_asked_for_twice():
    """The first answer ends its session, which must not end the second connect."""
    boards = Boards(1)
    link = boards.dispatcher.members[0].links[Service.STATUS]
    for _ in range(2):
        task = boards.start(iter_status())
        assert boards.dispatcher.openable() == [link]
        link.opening()
        boards.dispatcher.poll()
        assert link.state == LinkState.OPENING
        link.opened()
        boards.dispatcher.poll()
        link.received(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        boards.dispatcher.poll()
        assert task.outcome() == [b"{}"]
        assert link.state == LinkState.CLOSED


def iter_status():
    return (yield Batch(None, [b""], service=Service.STATUS))


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_boards_that_are_idle_take_turns(count):
    boards = opened(count)
    for _ in range(4 * count):
        task = boards.start(call())
        boards.take()
        boards.answer(next(link for link in boards.links if boards.waiting[link]))
        assert task.done
    assert set(boards.given.values()) == {4}


@pytest.mark.parametrize("in_flight", [1, 2, 3])
def test_no_link_has_more_than_its_limit_and_all_are_used(in_flight):
    boards = opened(3, in_flight=in_flight)
    task = boards.start(call(60))
    boards.take()
    while not task.done:
        busy = [link for link in boards.links if boards.waiting[link]]
        assert max(len(waiting) for waiting in boards.waiting.values()) <= in_flight
        left = 60 - sum(boards.given.values())
        if left:
            assert [len(boards.waiting[link]) for link in boards.links] == [in_flight] * 3
        boards.answer(max(busy, key=lambda link: len(boards.waiting[link])))
    assert task.outcome() == [bytes([k]) for k in range(60)]


def test_a_slow_board_gets_less():
    """It answers once while the other answers nine times."""
    boards = opened(2)
    slow, quick = boards.links
    task = boards.start(call(100))
    boards.take()
    while not task.done:
        for link in [quick] * 9 + [slow]:
            if boards.waiting[link]:
                boards.answer(link)
    assert boards.given[slow] <= 13
    assert sum(boards.given.values()) == 100


def test_a_job_that_was_lost_goes_to_another_board():
    boards = opened(2)
    first, second = boards.links
    task = boards.start(call())
    boards.take()
    holder, other = (first, second) if boards.waiting[first] else (second, first)
    holder.failed("gone")
    holder.forgive()
    boards.open()
    boards.take()
    assert boards.given[other] == 1, "not to the one that lost it, though it is there again"
    boards.answer(other)
    assert task.done


def test_what_was_sent_whole_and_is_not_pure_fails():
    boards = opened(2)
    task = boards.start(call(pure=False))
    boards.take()
    next(link for link in boards.links if boards.waiting[link]).failed("gone")
    boards.dispatcher.poll()
    with pytest.raises(ConnectionLost, match="^gone$"):
        task.outcome()


def test_a_job_that_was_not_sent_whole_is_repeated_though_not_pure():
    boards = opened(1)
    (link,) = boards.links
    task = boards.start(call(pure=False))
    link.sent(5)
    link.failed("gone")
    link.forgive()
    boards.dispatcher.poll()
    boards.open()
    boards.take()
    boards.answer(link)
    assert task.outcome() == [b"\0"]


def test_nothing_is_sent_behind_a_refusal_by_the_header():
    """The board reads no more, and closes soon: what was sent there would be lost."""
    boards = opened(1)
    (link,) = boards.links
    refused = boards.start(call())
    boards.take()
    link.received(error_message(Status.TOO_LARGE))
    with pytest.raises(TooLarge):
        refused.outcome()
    task = boards.start(call(pure=False))
    boards.take()
    assert boards.given[link] == 1
    boards.open()
    boards.take()
    boards.waiting[link].pop(0)  # what was refused
    boards.answer(link)
    assert task.outcome() == [b"\0"]


def record(mark):
    kind = MessageType.STREAM
    return (yield Batch(None, [mark] * 5, kind, pure=True, together=True))


def test_two_records_are_not_mixed_on_a_connection():
    """A board has the state of one record for a connection."""
    boards = opened(1)
    (link,) = boards.links
    tasks = [boards.start(record(mark)) for mark in (b"a", b"b")]
    boards.take()
    order = []
    while boards.waiting[link]:
        order.append(boards.waiting[link][0][1])
        boards.answer(link)
    assert order == [b"a"] * 5 + [b"b"] * 5
    assert all(task.done for task in tasks)


def test_a_record_stays_on_its_connection():
    boards = opened(2)
    task = boards.start(record(b"a"))
    boards.take()
    while not task.done:
        boards.answer(next(link for link in boards.links if boards.waiting[link]))
    assert sorted(boards.given.values()) == [0, 5]


def test_what_the_peer_takes_of_the_kernel_s_buffer_is_progress(monkeypatch):
    """All was given to the kernel; the clock is the test's."""
    now = [1000.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    boards = Boards(1)
    (link,) = boards.links
    boards.start(call())
    left = [900]
    link.opening()
    link.opened(lambda: left[0])
    boards.dispatcher.poll()
    boards.take()
    for left[0] in (800, 500, 20):
        now[0] += link.timeout + 1
        assert link.pause() == link.timeout
        assert link.state == LinkState.OPEN
    now[0] += link.timeout + 1
    link.pause()
    assert link.state == LinkState.CLOSED
    assert str(link.error) == "board0:4000 sent nothing for 30 s"


def test_a_board_that_is_not_there_is_tried_again_while_others_work():
    boards = Boards(2)
    absent, there = boards.links
    boards.start(call(20))
    absent.opening()
    absent.failed("refused")
    there.opening()
    there.opened()
    boards.dispatcher.poll()
    assert absent.hopeless(2)
    assert absent in boards.dispatcher.wanted
    absent.forgive()  # it need not rest
    assert boards.dispatcher.openable() == [absent]


def test_a_record_that_failed_leaves_its_connection():
    """The board may still have its state."""
    boards = opened(1)
    (link,) = boards.links
    task = boards.start(record(b"a"))
    boards.take()
    link.received(error_message(Status.BAD_DATA, boards.waiting[link][0][0]))
    boards.dispatcher.poll()
    with pytest.raises(BadData):
        task.outcome()
    assert link.state == LinkState.CLOSED


class HungUp:
    """A socket whose peer refused a message by its header and hung up before all was sent."""

    def __init__(self):
        self.said = [error_message(Status.TOO_LARGE), b""]

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        pass

    def setblocking(self, flag):
        pass

    def send(self, data):
        raise ConnectionResetError(104, "Connection reset by peer")

    def recv(self, size):
        return self.said.pop(0)


def one_job():
    boards = Boards(1)
    (link,) = boards.links
    task = boards.start(call())
    link.opening()
    return boards, link, task


def test_what_a_peer_said_is_received_when_sending_fails():
    boards, link, task = one_job()
    link.opened()
    boards.dispatcher.poll()
    wire = blocking._Wire(link)
    wire.socket = HungUp()
    wire.writable()
    with pytest.raises(TooLarge):
        task.outcome()


def test_what_a_peer_said_is_received_when_a_transport_fails():
    boards, link, task = one_job()
    wires = SimpleNamespace(wires={}, kick=boards.dispatcher.poll)
    wires.wires[link] = wire = aio._Wire(link, wires)
    connected = SimpleNamespace(dup=HungUp)
    wire.transport = SimpleNamespace(get_extra_info=lambda name: connected)
    link.opened()
    boards.dispatcher.poll()
    wire.connection_lost(ConnectionResetError(104, "Connection reset by peer"))
    with pytest.raises(TooLarge):
        task.outcome()
