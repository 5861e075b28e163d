/* Versions of the libraries of the devices. */
#include <stdio.h>
#include <string.h>

#include "config.h"
#include "kernels/kernels.h"

#ifdef GM_HAVE_CUDA
#include <cuda_runtime_api.h>
#endif

char *gm_cuda_version(char *text)
{
    snprintf(text, GM_VERSION_TEXT, "not in this build");
#ifdef GM_HAVE_CUDA
    int runtime = 0, driver = 0;
    if (cudaRuntimeGetVersion(&runtime) == cudaSuccess && cudaDriverGetVersion(&driver) == cudaSuccess) {
        int used = snprintf(text, GM_VERSION_TEXT, "%d.%d, ", runtime / 1000, runtime % 1000 / 10);
        snprintf(text + used, (size_t)(GM_VERSION_TEXT - used), driver ? "driver for up to %d.%d" : "no driver",
                 driver / 1000, driver % 1000 / 10);
    }
#endif
    return text;
}

/* The first word of digits and points, two numbers of them at least: "x86_64" is none. */
char *gm_driver_version(const char *name, char text[GM_DRIVER_TEXT])
{
    char line[256] = "";
    FILE *file = fopen(name, "re");
    text[0] = '\0';
    if (!file)
        return text;
    char *rest = line, *word;
    if (!fgets(line, sizeof line, file))
        line[0] = '\0';
    fclose(file);
    while (!text[0] && (word = strsep(&rest, " \t\n")))
        if (strspn(word, "0123456789.") == strlen(word) && strchr(word, '.'))
            snprintf(text, GM_DRIVER_TEXT, "%s", word);
    return text;
}
