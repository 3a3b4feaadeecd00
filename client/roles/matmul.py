"""Typed calls of the matrix-multiply role: products of 64x64 matrices of 32-bit integers.

Sums and products wrap around as in C, so signed and unsigned integers give the same bits
(:mod:`trebuchet.models.matmul`).
"""

import struct
from collections.abc import Sequence
from typing import Any

from ..jobs import Batch, Call
from ..operation import operation
from ..role import O, Role

__all__ = ["ORDER", "MatmulCalls"]

#: Rows and columns of a matrix.
ORDER = 64
_WORDS = struct.Struct(f"<{ORDER * ORDER}I")
_SIGNED = struct.Struct(f"<{ORDER * ORDER}i")


class MatmulCalls(Role[O]):
    """``board.matmul(a, b)``."""

    kind = "matmul"
    pure = True

    @operation
    def multiply(self, a: Any, b: Any) -> Call[Any]:
        """The product of ``a`` and ``b``.

        Both are 64x64, or both stacks of n such matrices, multiplied pair by pair and sent as
        messages that are under way together: lists of rows of int, or NumPy arrays of any integer
        type. The product has the shape of ``a``, of ``int`` or ``int32``.
        Raises ``ValueError`` for another shape.
        """
        if hasattr(a, "__array__") or hasattr(b, "__array__"):
            return (yield from self._arrays(a, b))
        stacked = bool(a) and bool(a[0]) and isinstance(a[0][0], Sequence)
        pairs = list(zip(a, b, strict=True)) if stacked else [(a, b)]
        results = yield self._batch([_pack(x) + _pack(y) for x, y in pairs])
        products = [_unpack(result) for result in results]
        return products if stacked else products[0]

    __call__ = multiply

    def _arrays(self, a: Any, b: Any) -> Call[Any]:
        import numpy as np  # noqa: PLC0415 - whoever passes an array has it; others need it not

        x, y = np.asarray(a), np.asarray(b)
        if x.shape != y.shape or x.ndim not in (2, 3) or x.shape[-2:] != (ORDER, ORDER):
            raise ValueError(f"{_SHAPES}, not {x.shape} and {y.shape}")
        if not (np.issubdtype(x.dtype, np.integer) and np.issubdtype(y.dtype, np.integer)):
            raise ValueError(f"matrices must be of integers, not {x.dtype} and {y.dtype}")
        words = [
            each.reshape(-1, ORDER, ORDER).astype(np.int64).astype(np.uint32).astype("<u4")
            for each in (x, y)
        ]
        operands = [p.tobytes() + q.tobytes() for p, q in zip(*words, strict=True)]
        results = yield self._batch(operands)
        return np.frombuffer(b"".join(results), "<i4").astype(np.int32).reshape(x.shape)

    def _batch(self, operands: list[bytes]) -> Batch:
        return Batch(self.name, operands, pure=True, largest=_WORDS.size, fault=_fault)


_SHAPES = f"matrices must be {ORDER}x{ORDER}, or stacks of as many of them"


def _fault(index: int, result: bytes) -> str | None:
    if len(result) == _WORDS.size:
        return None
    return f"a product of {len(result)} bytes, not {_WORDS.size}: is its role matmul?"


def _pack(matrix: Sequence[Sequence[int]]) -> bytes:
    if len(matrix) != ORDER or any(len(row) != ORDER for row in matrix):
        shape = f"{len(matrix)} rows of {sorted({len(row) for row in matrix})}"
        raise ValueError(f"{_SHAPES}, not {shape}")
    return _WORDS.pack(*(value & 0xFFFFFFFF for row in matrix for value in row))


def _unpack(result: bytes) -> list[list[int]]:
    words = _SIGNED.unpack(result)
    return [list(words[at : at + ORDER]) for at in range(0, len(words), ORDER)]
