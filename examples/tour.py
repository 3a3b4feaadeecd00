# %% [markdown]
# # A tour of a board
# Run the cells one after the other, or all: `python examples/tour.py ADDRESS`. Needs NumPy. The
# board has the roles `ecg` and `loopback`.

# %%
import collections
import sys
import time

from trebuchet.client import Board
from trebuchet.models.ecg import data, model

address = sys.argv[1] if len(sys.argv) > 1 else "192.0.2.2"
board = Board(address)

# %% [markdown]
# ## What is it?

# %%
state = board.status()
print(f"version {state['version']} on {state['board']}, up for {state['uptime_ms'] / 1000:.1f} s")
print("roles:", ", ".join(board.roles))

# %% [markdown]
# ## How long does a message take?

# %%
start = time.monotonic()
answers = list(board.role("loopback").stream([bytes(100)] * 50))
print(f"{len(answers)} messages, {1000 * (time.monotonic() - start) / 50:.2f} ms each")

# %% [markdown]
# ## A record of heart beats
# `data.load("208")` is a real one, after `trebuchet ecg fetch`.

# %%
record = data.load("synthetic", 1)
beats = board.ecg.run(record.samples)
kinds = collections.Counter(model.CLASSES[label] for label in beats.labels)
print(f"{len(beats.positions)} beats:", ", ".join(f"{n} {kind}" for kind, n in kinds.items()))

# %%
board.close()
