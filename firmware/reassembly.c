#include "reassembly.h"

#include <string.h>

#include "bulk.h"

#define MORE 0x2000u
#define OFFSET 0x1fffu

static BULK struct reassembly slots[REASSEMBLY_SLOTS];

void reassembly_start(void)
{
	for (unsigned i = 0; i < REASSEMBLY_SLOTS; i++)
		slots[i].used = false;
}

/* The datagram of a fragment: begun before, or in a free slot, or in that of the oldest. */
static struct reassembly *slot_of(const uint8_t *ip, uint32_t now_ms)
{
	struct reassembly *best = &slots[0];

	for (struct reassembly *slot = slots; slot < slots + REASSEMBLY_SLOTS; slot++) {
		if (slot->used && slot->from == packet_get32(ip + 12) && slot->id == packet_get16(ip + 4) &&
		    slot->protocol == ip[9])
			return slot;
		if (best->used && (!slot->used || now_ms - slot->since_ms > now_ms - best->since_ms))
			best = slot;
	}
	memset(best, 0, offsetof(struct reassembly, data));
	best->used = true;
	best->since_ms = now_ms;
	best->from = packet_get32(ip + 12);
	best->id = packet_get16(ip + 4);
	best->protocol = ip[9];
	return best;
}

/* Count the blocks from `first` to before `end` that have come. */
static unsigned count(const struct reassembly *slot, unsigned first, unsigned end)
{
	unsigned found = 0;

	for (; first < end; first++)
		found += slot->came[first / 8] >> (first % 8) & 1;
	return found;
}

/* Put `length` bytes at `at`; false if the datagram cannot be completed any more. */
static bool put(struct reassembly *slot, const uint8_t *data, size_t at, size_t length, bool more)
{
	size_t end = at + length;
	unsigned first = (unsigned)(at / 8), behind = (unsigned)((end + 7) / 8);
	unsigned there;

	if (length == 0 || end > REASSEMBLY_BYTES || (more && length % 8 != 0))
		return false;
	if (more ? slot->length != 0 && end >= slot->length :
		   end < slot->highest || (slot->length != 0 && slot->length != end))
		return false;
	there = count(slot, first, behind);
	if (there > 0)
		return there == behind - first;
	if (!more)
		slot->length = (uint16_t)end;
	if (slot->highest < end)
		slot->highest = (uint16_t)end;
	packet_copy(slot->data + at, data, length);
	slot->blocks = (uint16_t)(slot->blocks + (behind - first));
	for (; first < behind; first++)
		slot->came[first / 8] |= (uint8_t)(1u << (first % 8));
	return true;
}

struct reassembly *reassembly_take(const uint8_t *frame, size_t header, uint32_t now_ms)
{
	const uint8_t *ip = frame + PACKET_IP;
	struct reassembly *slot = slot_of(ip, now_ms);
	uint16_t part = packet_get16(ip + 6);
	size_t at = 8u * (part & OFFSET);

	if (!put(slot, ip + header, at, packet_get16(ip + 2) - header, (part & MORE) != 0)) {
		slot->used = false;
		return NULL;
	}
	if (at == 0 && slot->header_length == 0) {
		memcpy(slot->mac, frame + PACKET_MAC_BYTES, PACKET_MAC_BYTES);
		memcpy(slot->header, ip, header);
		slot->header_length = (uint16_t)header;
	}
	return slot->length != 0 && slot->blocks == (slot->length + 7u) / 8 ? slot : NULL;
}

struct reassembly *reassembly_expired(uint32_t now_ms)
{
	for (struct reassembly *slot = slots; slot < slots + REASSEMBLY_SLOTS; slot++)
		if (slot->used && now_ms - slot->since_ms >= REASSEMBLY_MS)
			return slot;
	return NULL;
}
