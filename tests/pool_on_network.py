"""Has a pool do jobs, as a process on a simulated network: ADDRESSES SEED COUNT LONGEST.

Prints how many results are their operands.
"""

import random
import sys

from trebuchet.client import Pool


def main(addresses, seed, count, longest):
    rng = random.Random(seed)
    operands = [rng.randbytes(rng.choice((0, 1, 700, longest))) for _ in range(int(count))]
    operands.sort(key=len)  # so that none has to wait long for those before it
    with Pool(addresses.split(","), roles=["loopback"], timeout=600) as pool:
        results = list(pool.role("loopback").stream(operands, pure=True))
    print(sum(a == b for a, b in zip(operands, results, strict=True)))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
