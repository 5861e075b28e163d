/* stop.h - USR2, TERM and INT ask the program to stop; a second one stops it at once. */
#ifndef GM_SRC_STOP_H
#define GM_SRC_STOP_H

/* Installs the handlers. */
void gm_stop_install(void);

/* GM_OK, or GM_ESTOPPED with a message once a signal has come. */
int gm_stop_status(void);

#endif
