// Drives any Verilated top cycle by cycle: a line of input has the inputs of one clock cycle in
// hexadecimal after a 0, a line of output what the outputs were before its edge. ports.h is generated.
#include <cinttypes>
#include <cstdio>

#include "Vtop.h"
#include "ports.h"

int main()
{
	Vtop top;
	uint64_t v[PORTS_IN + 1];
	SET_RESET(1);
	for (int i = 0; i < 8; i++) {
		top.CLOCK = i & 1;
		top.eval();
	}
	SET_RESET(0);
	while (true) {
		for (int i = 0; i <= PORTS_IN; i++)
			if (scanf("%" SCNx64, &v[i]) != 1)
				return 0;
		top.CLOCK = 0;
		PUT(v);
		top.eval();
		SHOW;
		fflush(stdout);
		top.CLOCK = 1;
		top.eval();
	}
}
