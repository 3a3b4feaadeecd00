"""Weights as the sequence of 16-bit words in which the gateware takes them at run time.

First the hidden layer, neuron by neuron, the weights of each in the order in which the inputs reach
the network; then the output layer; then the biases of both, three words each, the lowest first;
then the entries of the table.
"""

__all__ = ["ORDERS", "weight_words"]

#: By preset: numbers of the inputs in the order in which the gateware computes them; None: as they
#: are.
ORDERS = {"faithful": (10, 0, 1, 7, 4, 2, 8, 5, 3, 9, 6), "second": None}


def weight_words(weights, order=None):
    """The words of a :class:`~.model.Weights`; ``order``: feature numbers as they are computed."""
    w1 = weights.w1 if order is None else weights.w1[:, list(order)]
    words = [int(v) for matrix in (w1, weights.w2) for row in matrix for v in row]
    for bias in (*weights.b1, *weights.b2):
        words += [int(bias) >> shift for shift in (0, 16, 32)]
    words += [int(v) for v in weights.table]
    return [word & 0xFFFF for word in words]
