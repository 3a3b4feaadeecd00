/* The fixed page that the shell answers by itself, without the CPU (TCP port 8080). */
#ifndef TREBUCHET_PAGE_H
#define TREBUCHET_PAGE_H

/* Lay the page down in external memory and tell the shell its length. */
void page_start(void);

#endif
