/*
 * Which bitstream runs, on boards whose FPGA can load another one (`multiboot` of the board file;
 * elsewhere all of this is nothing). The golden one comes first, always. Its firmware starts the
 * application's, if that is good; that one confirms that it came up, as application firmware does
 * (boot.h). It runs the firmware that it brings along, and goes back to golden when it is given up.
 */
#ifndef TREBUCHET_MULTIBOOT_H
#define TREBUCHET_MULTIBOOT_H

#include <generated/soc.h>
#include <stdbool.h>

#ifdef TREBUCHET_MULTIBOOT

bool multiboot_is_application(void);
/*
 * An application's bitstream: may it run? Else back to golden. To be called before what can hang, or
 * a hang there would never be judged.
 */
void multiboot_check(void);
/*
 * Golden: start the other bitstream if that may run; does not return then. A line says why not. Nor
 * after the reset button: an FPGA that takes a confirmed bitstream no more would load it for ever.
 */
void multiboot_start(void);
/* This bitstream has come up. */
void multiboot_confirm(void);
/* An application's bitstream: back to golden, and does not return. Golden: nothing. */
void multiboot_leave(void);

#else

static inline bool multiboot_is_application(void)
{
	return false;
}

static inline void multiboot_check(void)
{
}

static inline void multiboot_start(void)
{
}

static inline void multiboot_confirm(void)
{
}

static inline void multiboot_leave(void)
{
}

#endif

#endif
