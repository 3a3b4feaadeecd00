"""Words that the head parser recognises: one table, walked a byte at a time."""

import enum

__all__ = ["BRANCHES", "DEAD", "METHODS", "NAMES", "NODES", "TERMINAL", "VALUES", "Word"]


class Word(enum.IntEnum):
    """What a token can be: a method, the name of a field, or a value."""

    NONE = 0
    # Methods (RFC 9110, 9; RFC 5789), with case.
    GET = 1
    HEAD = 2
    OPTIONS = 3
    CONNECT = 4
    KNOWN = 5  # one of the others
    # Names of fields that matter, without case.
    HOST = 6
    CONNECTION = 7
    CONTENT_LENGTH = 8
    TRANSFER_ENCODING = 9
    EXPECT = 10
    IF_NONE_MATCH = 11
    UNUSUAL = 12  # a field of which only the firmware takes care
    # Values, without case.
    CLOSE = 13
    CHUNKED = 14
    CONTINUE = 15


_METHODS = {
    b"GET": Word.GET,
    b"HEAD": Word.HEAD,
    b"OPTIONS": Word.OPTIONS,
    b"CONNECT": Word.CONNECT,
    b"POST": Word.KNOWN,
    b"PUT": Word.KNOWN,
    b"PATCH": Word.KNOWN,
    b"DELETE": Word.KNOWN,
    b"TRACE": Word.KNOWN,
}
_NAMES = {
    b"host": Word.HOST,
    b"connection": Word.CONNECTION,
    b"content-length": Word.CONTENT_LENGTH,
    b"transfer-encoding": Word.TRANSFER_ENCODING,
    b"expect": Word.EXPECT,
    b"if-none-match": Word.IF_NONE_MATCH,
    b"if-match": Word.UNUSUAL,
    b"range": Word.UNUSUAL,
}
_VALUES = {b"close": Word.CLOSE, b"chunked": Word.CHUNKED, b"100-continue": Word.CONTINUE}

#: The node from which no byte leads on.
DEAD = 0
#: Added to the word in the last node of each.
TERMINAL = 128


def _add(nodes, branches, words):
    """Append the nodes of a group of words; return where a word goes on after its first byte.

    Words that begin alike share the nodes up to their first difference.
    """
    places = {}  # node at which the byte after these bytes is expected
    for word, meaning in words.items():
        shared = max((p for p in places if word.startswith(p)), key=len, default=b"")
        if shared:
            branches.append((places[shared], word[len(shared)], len(nodes)))
        for k in range(len(shared) + 1, len(word)):
            places.setdefault(word[:k], len(nodes))
            nodes.append(word[k])
        nodes.append(TERMINAL | meaning)
    return {word[0]: places[word[:1]] for word in words}


_nodes, _branches = [0], []
#: Node after the first byte of a method, of a field's name (in lower case), of a value.
METHODS = _add(_nodes, _branches, _METHODS)
NAMES = _add(_nodes, _branches, _NAMES)
_CLOSE = _add(_nodes, _branches, {k: v for k, v in _VALUES.items() if v != Word.CHUNKED})
_CHUNKED = _add(_nodes, _branches, {k: v for k, v in _VALUES.items() if v == Word.CHUNKED})
#: First byte of the value that a field may have, and the node after it.
VALUES = {
    Word.CONNECTION: (ord("c"), _CLOSE[ord("c")]),
    Word.EXPECT: (ord("1"), _CLOSE[ord("1")]),
    Word.TRANSFER_ENCODING: (ord("c"), _CHUNKED[ord("c")]),
}
#: By node: the byte that leads to the next one, or the word that is complete.
NODES = tuple(_nodes)
#: ``(node, byte, target)``: another byte that leads on from a node.
BRANCHES = tuple(_branches)
