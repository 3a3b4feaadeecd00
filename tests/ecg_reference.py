"""The ECG role once more, written from the data sheet of models/ecg/model.py, sample by sample.

Plain Python integers and lists, no NumPy, one value at a time as in hardware: a second opinion on
the golden model. Every intermediate is checked against the width that the data sheet gives.
"""

from trebuchet.models.ecg import model


def fits(value, bits):
    """``value``, which must be a signed number of that many bits."""
    assert -(1 << bits - 1) <= value < 1 << bits - 1, (value, bits)
    return value


def level(x, low_bits, high_bits):
    low, high = [], []
    for n in range(len(x) // 2):
        before = x[max(2 * n - 1, 0)]
        after = x[min(2 * n + 2, len(x) - 1)]
        low.append(fits((before + 3 * x[2 * n] + 3 * x[2 * n + 1] + after + 4) // 8, low_bits))
        high.append(fits(x[2 * n] - x[2 * n + 1], high_bits))
    return low, high


def crossings(d2):
    found = []
    for m in range(1, len(d2)):
        if (d2[m - 1] < 0) != (d2[m] < 0):
            near = d2[max(0, m - 4) : m + 4]
            score = sum(abs(value) for value in near)
            assert score < 1 << 20
            found.append((m, score))
    return found


def signal_level(found, count):
    runs = [0] * max(1, count // 128)
    for m, score in found:
        if m // 128 < len(runs):
            runs[m // 128] = max(runs[m // 128], score)
    runs.sort()
    return runs[(len(runs) - 1) // 2]


def detect(found, signal):
    beats, candidate = [], None
    for m, score in found:
        if candidate and m - candidate[0] > model.REFRACTORY:
            beats.append(candidate)
            candidate = None
        loud = score > model.MIN_SCORE and 16 * score > model.THRESHOLD * signal
        if loud and beats and m - beats[-1][0] <= model.T_WAVE:
            loud = 16 * score > model.T_THRESHOLD * beats[-1][1]
        if loud and (candidate is None or score > candidate[1]):
            candidate = (m, score)
    return [m for m, _ in [*beats, *([candidate] if candidate else [])]]


def plog(value):
    if value == 0:
        return 0
    e = value.bit_length() - 1
    return (e + 1) * 256 + (value - 2**e) * 256 // 2**e


def variance(x, bits):
    result = len(x) * sum(value * value for value in x) - sum(x) ** 2
    assert 0 <= result < 1 << bits
    return result


def correlation(x):
    n = len(x)
    r = [fits(sum(x[i] * x[i + k] for i in range(n - k)), 31) for k in range(n)]
    shift = max(0, r[0].bit_length() - 16)
    q = [fits(value >> shift, 17) for value in r]
    return plog(variance(q, 42)) + 512 * shift


def ratio(x):
    return plog(max(0, -min(x))) - plog(max(0, max(x)))


def features(samples, position, rr):
    part = samples[position - 32 : position + 32]
    mean = sum(part) // 64
    qrs = [fits(max(-2048, min(2047, value - mean)), 12) for value in part]
    a1, d1 = level(qrs, 12, 13)
    a2, d2 = level(a1, 12, 13)
    bands = (d1, d2, a2)
    vector = [plog(variance(qrs, 36))]
    vector += [plog(variance(band, 36)) for band in bands]
    vector += [correlation(band) for band in bands]
    vector += [ratio(band) for band in bands]
    vector.append(8 * rr)
    return [fits(value, 16) for value in vector]


def layer(inputs, rows, biases, shift, table):
    bits = 36 if len(inputs) <= 20 else 39
    sums, outputs = [], []
    for row, bias in zip(rows, biases, strict=True):
        z = bias
        for weight, value in zip(row, inputs, strict=True):
            z = fits(z + fits(weight, 16) * value, bits)
        sums.append(z)
        outputs.append(table[max(-512, min(511, z >> shift)) + 512])
    return sums, outputs


def faithful_inputs(samples, beats):
    previous, result = None, []
    for m in beats:
        rr = 511 if previous is None else min(4 * (m - previous), 511)
        previous = m
        near = 32 <= 4 * m <= len(samples) - 32
        result.append(features(samples, 4 * m, rr) if near else None)
    return result


#: Of the values around a beat those that the network sees, counted from the beat.
SEEN = [*range(-32, -12, 2), *range(-12, 14), *range(14, 32, 2)]


def centred(values):
    mean = fits(sum(values) // 64, 16)
    seen = [values[32 + i] for i in SEEN]
    return [fits(max(-2048, min(2047, value - mean)), 12) for value in seen]


def second_inputs(samples, beats):
    """The inputs of every accepted beat: models/ecg/second.py."""
    used = samples[: len(samples) // 4 * 4]
    a2, _ = level(level(used, 16, 17)[0], 16, 17)

    def value(place):
        return a2[max(0, min(len(a2) - 1, place))]

    number = max(k for k in (1, 2, 4, 8, 16) if k <= max(1, len(beats)))
    shape = [fits(sum(value(m + i) for m in beats[:number]) // number, 16) for i in range(-32, 32)]
    common = centred(shape)
    result = []
    for at, m in enumerate(beats):
        trace = centred([value(m + i) for i in range(-32, 32)])
        gaps = []
        for later in (at, at + 1, at - 1, at + 2):
            known = 0 < later < len(beats)
            gaps.append(plog(min(255, beats[later] - beats[later - 1]) if known else 255))
        length = (beats[-1] - beats[0], len(beats) - 1) if len(beats) > 1 else (255, 1)
        vector = [*trace, *common, *gaps, plog(length[0]) - plog(length[1])]
        result.append([fits(v, 16) for v in vector])
    return result


INPUTS = {"faithful": faithful_inputs, "second": second_inputs}


def classify(samples, weights, preset=model.FAITHFUL):
    used = samples[: len(samples) // 4 * 4]
    a1, _ = level(used, 16, 17)
    _, d2 = level(a1, 16, 17)
    found = crossings(d2)
    beats = detect(found, signal_level(found, len(d2)))
    table = weights.table.tolist()
    shift1, shift2 = preset.shifts
    result = b""
    for m, vector in zip(beats, INPUTS[preset.name](samples, beats), strict=True):
        position = 4 * m
        if position < 32 or position + 32 > len(samples):
            continue
        args = (weights.w1.tolist(), weights.b1.tolist(), shift1, table)
        hidden = [value >> 1 for value in layer(vector, *args)[1]]
        args = (weights.w2.tolist(), weights.b2.tolist(), shift2, table)
        sums, scores = layer(hidden, *args)
        label = sums.index(max(sums))
        words = (position, label, *scores)
        result += b"".join(word.to_bytes(2, "little") for word in words)
    return result
