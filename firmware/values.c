#include "values.h"

#include <string.h>

#include "text.h"

bool piece_equals(struct piece piece, const char *string)
{
	return piece.length == strlen(string) && memcmp(piece.at, string, piece.length) == 0;
}

bool piece_cut(struct piece *rest, char separator, struct piece *first)
{
	for (size_t i = 0; i < rest->length; i++) {
		if (rest->at[i] == separator) {
			*first = (struct piece){ rest->at, i };
			*rest = (struct piece){ rest->at + i + 1, rest->length - i - 1 };
			return true;
		}
	}
	return false;
}

bool value_unsigned(struct piece piece, uint32_t largest, uint32_t *value)
{
	uint32_t found = 0;

	if (piece.length == 0 || piece.length > 9 || (piece.length > 1 && piece.at[0] == '0'))
		return false;
	for (size_t i = 0; i < piece.length; i++) {
		unsigned digit = (unsigned char)piece.at[i] - '0';

		if (digit > 9)
			return false;
		found = (found << 3) + (found << 1) + digit;
	}
	if (found > largest)
		return false;
	*value = found;
	return true;
}

bool value_ip(struct piece piece, uint32_t *ip)
{
	uint32_t found = 0;

	for (int i = 0; i < 4; i++) {
		struct piece part = piece;
		uint32_t byte;

		if (i < 3 && !piece_cut(&piece, '.', &part))
			return false;
		if (!value_unsigned(part, 255, &byte))
			return false;
		found = found << 8 | byte;
	}
	*ip = found;
	return true;
}

bool value_mac(struct piece piece, uint64_t *mac)
{
	uint32_t found = 0, high = 0; /* the high one is the bits that left the other */

	if (piece.length != 17)
		return false;
	for (size_t i = 0; i < 17; i++) {
		int digit = text_digit_value(piece.at[i]);

		if (i % 3 == 2 ? piece.at[i] != ':' : digit < 0)
			return false;
		if (i % 3 != 2) {
			high = high << 4 | found >> 28;
			found = found << 4 | (unsigned)digit;
		}
	}
	*mac = (uint64_t)high << 32 | found;
	return true;
}

bool value_is_host(uint32_t ip)
{
	uint32_t first = ip >> 24;

	return first != 0 && first != 127 && first < 224;
}

bool value_is_station(uint64_t mac)
{
	return mac != 0 && (mac >> 40 & 1) == 0;
}
