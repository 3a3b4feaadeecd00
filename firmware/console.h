/* The console: the commands on the UART, with a prompt, line editing and history. */
#ifndef TREBUCHET_CONSOLE_H
#define TREBUCHET_CONSOLE_H

/* From now on log lines are printed. */
void console_log(void);
/* Show the prompt; from now on there are commands, too. */
void console_start(void);
/* Carry out what has been typed, one line at most; wakes the event loop for what may be left. */
void console_serve(void);

#endif
