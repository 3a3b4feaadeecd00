#!/bin/bash
# client.sh HOST PORT TEXT: have a board's role work on TEXT; its result goes to standard output.
set -eu -o pipefail
LC_ALL=C # ${#3} counts bytes

die() {
	echo "client: $1" >&2
	exit 1
}

# A number of 32 bits, the low byte first, as escapes of printf.
u32() {
	printf '\\x%02x\\x%02x\\x%02x\\x%02x' $(($1 & 255)) $(($1 >> 8 & 255)) \
		$(($1 >> 16 & 255)) $(($1 >> 24 & 255))
}

[ $# -eq 3 ] || die "use: client.sh HOST PORT TEXT"
exec 3<>"/dev/tcp/$1/$2" || die "cannot connect"

# A data message: type, 3 zero bytes, size of what follows, ID, operand.
printf "\\x03\\0\\0\\0$(u32 $((4 + ${#3})))$(u32 1)" >&3
printf %s "$3" >&3

# Every answer has 12 bytes at least: type, 3 zero bytes, size, and 4 more.
head=($(head -c 12 <&3 | od -An -v -tu1))
[ ${#head[@]} -eq 12 ] || die "the board closed the connection"
[ "${head[0]}" -ne 2 ] || die "refused with status ${head[8]}"
size=$((head[4] | head[5] << 8 | head[6] << 16 | head[7] << 24))
head -c $((size - 4)) <&3
