#include "mailbox.h"
void mailbox_start(void) {}
void mailbox_serve(void) {}
