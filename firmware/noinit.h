/* Variables that keep their contents over a restart; at power-up they hold anything. */
#ifndef TREBUCHET_NOINIT_H
#define TREBUCHET_NOINIT_H

#define NOINIT __attribute__((section(".noinit")))
/* The first of them, which a version finds that another one has left. */
#define NOINIT_RECORD __attribute__((section(".noinit.record")))

/* Behind it, what the boot ROM leaves (handover.h). */
#define NOINIT_HANDOVER __attribute__((section(".noinit.handover")))

#endif
