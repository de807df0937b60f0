/* SPDX-License-Identifier: MIT */
/*
 * Names instructions in flow text by the program that the server has, as it is mapped where they
 * run: a reader needs neither the images nor to follow which process runs.
 */
#include "range/named.h"

#include <stdlib.h>
#include <string.h>

/* "I PC ENCODING", "N PC", or "B FROM TO", of which TO is named, which has no line end. */
static int name_line(struct tl_range_named *named, const char *line, size_t n, struct tl_buf *out)
{
    char pc[24] = "", function[256];
    int r = tl_buf_add(out, line, n);
    if (r < 0 || n < 3 || !strchr("INB", line[0]) || line[1] != ' ')
        return r;
    const char *const to = line[0] == 'B' ? memchr(line + 2, ' ', n - 2) : NULL;
    const char *const from = to ? to + 1 : line + 2;
    const size_t left = (size_t)(line + n - from);
    memcpy(pc, from, left < sizeof pc - 1 ? left : sizeof pc - 1);
    tl_function_text(named->image, &named->now, strtoull(pc, NULL, 16), function, sizeof function);
    return *function ? tl_buf_printf(out, " <%s>", function) : r;
}

int tl_range_named_item(struct tl_range_named *named, const struct tl_item *item,
                        struct tl_buf *out)
{
    struct tl_buf *const text = &named->text;
    tl_buf_reset(text);
    int r = tl_item_text(text, item, 1);
    for (size_t at = 0; r >= 0 && at < text->n;) {
        const char *const line = (const char *)text->p + at;
        const char *const end = memchr(line, '\n', text->n - at);
        const size_t n = end ? (size_t)(end - line) : text->n - at;
        r = named->image ? name_line(named, line, n, out) : tl_buf_add(out, line, n);
        if (r >= 0)
            r = tl_buf_add(out, "\n", 1);
        at += n + 1;
    }
    if (item->kind != TL_ITEM_BLOCK)
        tl_flow_now_item(&named->now, item);
    return r;
}

void tl_range_named_fini(struct tl_range_named *named)
{
    tl_buf_fini(&named->text);
}
