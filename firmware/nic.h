/* Driver of the frame port (cores/net/frame_port.py): whole Ethernet frames. */
#ifndef TREBUCHET_NIC_H
#define TREBUCHET_NIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the driver hands on at most, a multiple of four: no frame of Ethernet without FCS is longer. */
#define NIC_FRAME_BYTES 1520u
/* What the port sends at most. */
#define NIC_SEND_BYTES 512u

/* Is there a frame port in this board? */
bool nic_exists(void);
/* Listen for frames to us, and to a UDP port of any address, with the port's interrupt. */
void nic_start(uint16_t udp_port);
/* Listen for frames to another UDP port of any address. */
void nic_listen(uint16_t udp_port);
/* Take the next frame; its length, or 0 when there is none, or one that is too long. */
size_t nic_receive(uint32_t frame[NIC_FRAME_BYTES / 4]);
/* Is a frame still being sent? */
bool nic_busy(void);
/* Send a frame of at least 14 bytes; not while nic_busy(). */
void nic_send(const uint32_t *frame, size_t length);

#endif
