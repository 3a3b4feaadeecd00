"""LTL: a low-latency reliable transport between boards (docs/network.md, LTL)."""
