/* SPDX-License-Identifier: MIT */
/*
 * Takes the elements out of a range's JSON document and gives each the name of its stream. The
 * document has one element per line, so that nothing needs to be parsed or held.
 */
#include "out/ndjson.h"

/* Elements are on lines of their own, separate from the document's begin and end. */
static int take_line(void *context, char *line)
{
    const struct tl_ndjson *const n = context;
    size_t size = strlen(line);
    if (strncmp(line, "{\"at\":", 6) != 0)
        return TL_OK;
    if (line[size - 1] == ',')
        line[size - 1] = 0;
    return fprintf(n->file, "{\"stream\":\"%s\",%s\n", n->stream, line + 1) < 0 ? TL_IO : TL_OK;
}

int tl_ndjson_push(struct tl_ndjson *n, struct tl_bytes json)
{
    return tl_linewise_push(&n->lines, json, take_line, n);
}
