/* The CPU's end of the mailbox service: HTTP requests that came through the TCP engine. */
#ifndef TREBUCHET_MAILBOX_H
#define TREBUCHET_MAILBOX_H

/* Switch the mailbox and its interrupt on. */
void mailbox_start(void);
/* Serve everything that waits; returns when nothing does. */
void mailbox_serve(void);

#endif
