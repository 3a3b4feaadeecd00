/*
 * Active mode: the board opens a connection to the server that the configuration names, and another
 * one when that ends. What the server sends on it are requests as on any other connection (manage.h).
 */
#ifndef TREBUCHET_SERVER_H
#define TREBUCHET_SERVER_H

#include <stddef.h>
#include <stdint.h>

/* Begin, if there is a server; after ip_start(). */
void server_start(void);
/* Everything that is due now; the event loop calls it at every turn. */
void server_serve(void);
/* A frame for the CPU: is it the answer that tells where the server is? */
void server_take_frame(const uint8_t *frame, size_t length);

#endif
