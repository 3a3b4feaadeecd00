"""The loopback role: measures the system without compute."""
