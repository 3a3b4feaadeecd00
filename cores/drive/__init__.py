"""Block devices: their contract, and the movement of data between them and memory."""
