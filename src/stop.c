#include "src/stop.h"

#include "base/status.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t caught;

static void on_signal(int number)
{
    if (caught)
        _exit(GM_ESTOPPED);
    caught = number;
}

void gm_stop_install(void)
{
    static const int signals[] = {SIGUSR2, SIGTERM, SIGINT};
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        sigaction(signals[i], &action, NULL);
    signal(SIGXFSZ, SIG_IGN); /* a limit on the size of files is an error of the write that meets it */
}

int gm_stop_status(void)
{
    return caught ? gm_fail(GM_ESTOPPED, "stopped by signal %d (%s); the output was discarded", (int)caught, strsignal((int)caught)) : GM_OK;
}
