/* Driver of the frame port (cores/net/frame_port.py): whole Ethernet frames, one at a time. */
#ifndef TREBUCHET_NIC_H
#define TREBUCHET_NIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the port receives at most; it sends one byte less. */
#define NIC_FRAME_BYTES 1024

/* Is there a frame port in this board? */
bool nic_exists(void);
/* Listen for datagrams to a UDP port, with the port's interrupt. */
void nic_start(uint16_t udp_port);
/* Take the frame that waits; its length, or 0 when none does. */
size_t nic_receive(uint32_t frame[NIC_FRAME_BYTES / 4]);
/* Is a frame still being sent? */
bool nic_busy(void);
/* Send a frame of at least 14 bytes; not while nic_busy(). */
void nic_send(const uint32_t *frame, size_t length);

#endif
