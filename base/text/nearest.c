#include "base/text/nearest.h"

#include <string.h>

enum { LONGEST = 32 };

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* The least number of single edits that make b of a, none of which changes a letter that another one has made: the
 * distance of Damerau and Levenshtein, restricted. */
static int distance(const char *a, const char *b)
{
    int edits[LONGEST + 1][LONGEST + 1];
    int rows = (int)strlen(a), columns = (int)strlen(b);
    for (int i = 0; i <= rows; i++)
        for (int j = 0; j <= columns; j++) {
            if (i == 0 || j == 0) {
                edits[i][j] = i + j;
                continue;
            }
            edits[i][j] = least(least(edits[i - 1][j], edits[i][j - 1]) + 1,
                                edits[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                edits[i][j] = least(edits[i][j], edits[i - 2][j - 2] + 1);
        }
    return edits[rows][columns];
}

const char *gm_nearest(const char *word, const char *(*name)(int index), int count)
{
    const char *found = NULL;
    size_t length = strlen(word);
    int most = (int)length / 3;
    if (length > LONGEST)
        return NULL;
    for (int i = 0; i < count; i++) {
        int edits = strlen(name(i)) <= LONGEST ? distance(word, name(i)) : LONGEST;
        if (edits <= most) {
            found = name(i);
            most = edits - 1;
        }
    }
    return found;
}
