"""``Answer``: the place in memory of the answer to each kind of request, by the image's layout."""

from streams import make_rng, plain, run, seeds, stream_checker, stream_get, stream_put
from trebuchet.cores.web.answer import OFFSET_BITS, PIECE, Answer, Kind
from trebuchet.models.http.image import PLACES, SAME_ROOM
from trebuchet.models.http.request import Verdict

BASE = 0x4567_8000


def expected(said):
    """What the answer must be, stated case by case."""
    entry, head = said["entry"], said["head"]
    answer = {"session": said["session"], "bytes": said["bytes"], "rest": 0}
    if said["verdict"] == Verdict.OK and said["found"]:
        close = said["close"]
        if said["same"]:
            header = entry["same_close_header" if close else "same_header"]
            addr = entry["same"] + (SAME_ROOM if close else 0)
            return answer | {
                "kind": Kind.NOT_MODIFIED, "close": close, "addr": addr, "length": header,
            }  # fmt: skip
        header = entry["close_header" if close else "found_header"]
        answer |= {"kind": Kind.FOUND, "close": close, "addr": entry["close" if close else "found"]}
        if head:
            return answer | {"length": header}
        if entry["length"] >= PIECE or (close and not entry["whole_close"]):
            rest_addr = entry["found"] + entry["found_header"]
            more = {"rest": entry["length"], "rest_addr": rest_addr} if entry["length"] else {}
            return answer | {"length": header} | more
        return answer | {"length": header + entry["length"]}
    verdict, close, kind = said["verdict"], True, Kind.REJECTED
    if verdict == Verdict.FIRMWARE:
        verdict, kind = Verdict.UNAVAILABLE, Kind.UNUSUAL
    elif verdict == Verdict.OK:
        verdict, close, kind = Verdict.NOT_FOUND, said["close"], Kind.NOT_FOUND
    place = PLACES[verdict, bool(close)]
    addr = (BASE >> OFFSET_BITS << OFFSET_BITS) + place.offset
    length = place.header if head else place.whole
    return answer | {"kind": kind, "close": close, "addr": addr, "length": length}


def request(rng):
    verdicts = {verdict for verdict, _ in PLACES} - {Verdict.NOT_FOUND}
    verdict = rng.choice([Verdict.OK] * 4 * len(verdicts) + [Verdict.FIRMWARE, *sorted(verdicts)])
    flags = {name: rng.getrandbits(1) for name in ("head", "close", "found", "same")}
    flags["found"] |= rng.getrandbits(1)
    entry = {name: rng.randrange(50, 250) for name in ("found_header", "close_header")}
    entry |= {name: rng.randrange(50, 250) for name in ("same_header", "same_close_header")}
    entry |= {name: rng.randrange(1 << 30) for name in ("found", "close", "same")}
    lengths = [0, 1, PIECE - 1, PIECE, PIECE + 1, rng.randrange(1 << 30)]
    entry |= {"length": rng.choice(lengths), "whole_close": rng.getrandbits(1)}
    more = {"session": rng.getrandbits(17), "bytes": rng.randrange(1, 60), "entry": entry}
    return {"verdict": int(verdict), **flags, **more}


@seeds(2)
def test_answers_lie_where_the_image_has_them(seed):
    dut, rng = Answer(60), make_rng(seed, "requests")
    requests = [request(rng) for _ in range(250)]
    kinds = set()

    async def put(ctx):
        ctx.set(dut.base, BASE | 0x123)  # the low bits are ignored
        for said in requests:
            await stream_put(ctx, dut.i, said, rng=rng)

    async def get(ctx):
        waits = make_rng(seed, "waits")
        for said in requests:
            answer = plain(await stream_get(ctx, dut.o, rng=waits))
            wanted = expected(said)
            assert {name: answer[name] for name in wanted} == wanted, said
            kinds.add((answer["kind"], bool(answer["rest"])))

    run(dut, put, get, stream_checker(dut.o), limit=2000, seed=seed)
    assert len(kinds) == 6


def test_one_a_cycle():
    dut, rng = Answer(60), make_rng(0, "pace")

    async def put(ctx):
        ctx.set(dut.o.ready, 1)
        for _ in range(50):
            await stream_put(ctx, dut.i, request(rng))

    assert run(dut, put, limit=100) <= 51
