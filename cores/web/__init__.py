"""The HTTP/1.1 service: finder, parser, index lookup, responses (docs/web.md)."""
