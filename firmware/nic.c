#include "nic.h"

#include <generated/trebuchet_regs.h>

#ifdef TREBUCHET_NIC_BASE

#define STATUS_PENDING (1u << TREBUCHET_NIC_STATUS_PENDING_OFFSET)
#define STATUS_SENDING (1u << TREBUCHET_NIC_STATUS_SENDING_OFFSET)
#define STATUS_END (1u << TREBUCHET_NIC_STATUS_END_OFFSET)

bool nic_exists(void)
{
	return true;
}

/* Read a frame from the port, which shows one word after the other. */
static size_t read_frame(uint32_t *frame)
{
	size_t at = 0;
	uint32_t status, word;

	do {
		/* The bus takes longer than the cycles until the next word is there. */
		word = trebuchet_nic_rx_data_read();
		status = trebuchet_nic_status_read();
		trebuchet_nic_rx_next_write(1);
		if (at < NIC_FRAME_BYTES)
			frame[at / 4] = word;
		at += 4;
	} while ((status & STATUS_END) == 0);
	return at > NIC_FRAME_BYTES ? 0 : at - (status >> TREBUCHET_NIC_STATUS_SPARE_OFFSET);
}

void nic_start(uint16_t udp_port)
{
	nic_listen(udp_port);
	trebuchet_nic_irq_enable_write(1);
}

void nic_listen(uint16_t udp_port)
{
	trebuchet_nic_port_write(udp_port);
}

size_t nic_receive(uint32_t frame[NIC_FRAME_BYTES / 4])
{
	return (trebuchet_nic_status_read() & STATUS_PENDING) != 0 ? read_frame(frame) : 0;
}

bool nic_busy(void)
{
	return (trebuchet_nic_status_read() & STATUS_SENDING) != 0;
}

void nic_send(const uint32_t *frame, size_t length)
{
	for (size_t i = 0; 4 * i < length; i++) {
		trebuchet_nic_tx_data_write(frame[i]);
		trebuchet_nic_tx_write_write(1);
	}
	trebuchet_nic_send_write((uint32_t)length);
}

#else /* a board without a frame port */

bool nic_exists(void)
{
	return false;
}

void nic_start(uint16_t udp_port)
{
	(void)udp_port;
}

void nic_listen(uint16_t udp_port)
{
	(void)udp_port;
}

size_t nic_receive(uint32_t frame[NIC_FRAME_BYTES / 4])
{
	(void)frame;
	return 0;
}

bool nic_busy(void)
{
	return true;
}

void nic_send(const uint32_t *frame, size_t length)
{
	(void)frame;
	(void)length;
}

#endif
