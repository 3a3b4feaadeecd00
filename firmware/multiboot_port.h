/* What ends a bitstream. Tests have their own. */
#ifndef TREBUCHET_MULTIBOOT_PORT_H
#define TREBUCHET_MULTIBOOT_PORT_H

/* The FPGA is about to be configured anew; does not return. */
void multiboot_port_wait(void);

#endif
