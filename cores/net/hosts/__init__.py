"""What an Internet host must answer beside its transport: ARP, ICMP echo, UDP echo and discard."""
