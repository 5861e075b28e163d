/* generate - prints the tables of the command line, one row a line, for the completion of shells. The columns are apart
 * by tabs, and no text has one:
 *
 *   operation  NAME  ARGUMENTS  HELP
 *   form       OPERATION  NAME  ARGUMENTS                               each but the usual one
 *   test       NAME  ARGUMENT or -  HELP                                of bench
 *   option     NAME  LETTER or -  METAVAR or - (a flag)  KIND  OPERATIONS (words, in commas)  HELP
 *
 * It is compiled from the same tables as the program (src/operations.def, src/options.def, src/bench/benches.def). */
#include <stdio.h>
#include <string.h>

#include "src/options.h"

static const struct {
    const char *name, *arguments, *help;
    unsigned groups;
} operations[] = {
#define GM_OPERATION(id, name, operation, device, groups, least, most, arguments, help) {name, arguments, help, groups},
#include "src/operations.def"
#undef GM_OPERATION
};

static const struct {
    const char *name, *argument, *help;
} tests[] = {
#define GM_BENCH(name, function, argument, experiments, help) {name, argument, help},
#include "src/bench/benches.def"
#undef GM_BENCH
};

static const struct {
    const char *name;
    int letter;
    const char *kind;
    uint64_t operations;
    const char *metavar, *help;
} options[] = {
#define GM_OPTION(field, name, letter, kind, start, operations, metavar, help) \
    {name, letter, #kind, operations, metavar, help},
#include "src/options.def"
#undef GM_OPTION
};

static void print_operation(int i)
{
    const char *form = operations[i].arguments;
    int length = (int)strcspn(form, "\n");
    printf("operation\t%s\t%.*s\t%s\n", operations[i].name, length, form, operations[i].help);
    while (form[length]) {
        form += length + 1;
        length = (int)strcspn(form, "\n");
        int name = (int)strcspn(form, " ");
        printf("form\t%s\t%.*s\t%.*s\n", operations[i].name, name, form, length - name - 1, form + name + 1);
    }
}

int main(void)
{
    for (int i = 0; i < GM_OPERATIONS; i++)
        print_operation(i);
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        printf("test\t%s\t%s\t%s\n", tests[i].name, tests[i].argument ? tests[i].argument : "-", tests[i].help);
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        printf("option\t%s\t%c\t%s\t%s\t,", options[i].name, options[i].letter ? options[i].letter : '-',
               options[i].metavar ? options[i].metavar : "-", options[i].kind);
        for (int o = 0; o < GM_OPERATIONS; o++)
            if ((options[i].operations >> o & 1) || (options[i].operations >> 32 & operations[o].groups))
                printf("%s,", operations[o].name);
        printf("\t%s\n", options[i].help);
    }
    return fflush(stdout) ? 1 : 0;
}
