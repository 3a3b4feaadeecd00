"""``WordWalk``: every word of the table is found, as far as it goes, and nothing else is."""

from streams import make_rng, run, seeds
from trebuchet.cores.web import words
from trebuchet.cores.web.word_walk import WordWalk
from trebuchet.cores.web.words import Word

METHODS, NAMES, VALUES = words._METHODS, words._NAMES, words._VALUES


def tokens(rng, table):
    """Each word, and what is nearly one."""
    for word in table:
        yield word
        at = rng.randrange(len(word))
        yield word[:at] + bytes([word[at] ^ 1 << rng.randrange(8)]) + word[at + 1 :]
        yield word.swapcase()
        yield word + rng.choice([b"x", b"\xff", b"\x00"])
        yield rng.choice(list(table))[: rng.randrange(1, 4)] + word[1:]


@seeds(2)
def test_equals_a_look_up(seed):
    """After every byte, for tokens that are words, beginnings of words, and neither."""
    dut, rng = WordWalk(), make_rng(seed, "words")
    tables = [(1, METHODS, lambda t: t), (0, NAMES, bytes.lower)]
    # A value begins where its field says, which is not by its first byte alone.
    values = [(word, rng.choice([word, word.upper()])) for word in VALUES]

    async def walk(ctx, token, first, exact):
        for at, byte in enumerate(token):
            ctx.set(dut.byte, byte)
            ctx.set(dut.start, at == 0 and first)
            ctx.set(dut.step, at > 0)
            ctx.set(dut.exact, exact)
            await ctx.tick()
            ctx.set(dut.start, 0)
            ctx.set(dut.step, 0)
            ctx.set(dut.byte, rng.getrandbits(8))
            if rng.random() < 0.2:
                await ctx.tick()
            yield ctx.get(dut.word)

    async def bench(ctx):
        assert ctx.get(dut.word) == Word.NONE
        for methods, table, fold in tables:
            ctx.set(dut.methods, methods)
            for token in tokens(rng, table):
                at = 0
                async for word in walk(ctx, token, True, methods):
                    at += 1
                    expected = table.get(fold(token[:at]), Word.NONE)
                    assert word == expected, token[:at]
        targets = {Word.CLOSE: Word.CONNECTION, Word.CHUNKED: Word.TRANSFER_ENCODING}
        targets[Word.CONTINUE] = Word.EXPECT
        for word, text in values:
            ctx.set(dut.set, 1)
            ctx.set(dut.target, words.VALUES[targets[VALUES[word]]][1])
            await ctx.tick()
            ctx.set(dut.set, 0)
            async for found in walk(ctx, b"-" + text[1:], False, 0):
                last = found
            # The byte in place of the first one was not looked at: neither `start` nor `step`.
            assert last == VALUES[word], text

    run(dut, bench, limit=4000, seed=seed)
