#include "page.h"

#include <generated/soc.h>
#include <generated/trebuchet_regs.h>

#include "text.h"

/* Header and body together: one object of 1 KiB, as in the paper's transactions. */
#define PAGE_BYTES 1024
#define HEAD_BYTES 85

void page_start(void)
{
#ifdef TREBUCHET_PAGE
	struct text page = text_in((char *)TREBUCHET_PAGE, PAGE_BYTES);

	text_plain(&page, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n");
	text_plain(&page, "Content-Length: ");
	text_unsigned(&page, PAGE_BYTES - HEAD_BYTES);
	text_plain(&page, "\r\n\r\n");
	while (!page.overflow)
		text_plain(&page, "Trebuchet throws this page from its memory. ");
	trebuchet_shell_page_length_write(PAGE_BYTES);
#endif
}
