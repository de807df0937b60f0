/* SPDX-License-Identifier: MIT */
/*
 * Columns are found by their contents, not by tabs, since some versions pad with spaces: time and
 * cycle, then address and encoding, which have no 0x. What is written has an equals sign, what is
 * only read a colon.
 */
#include "import/rtl_log.h"

#include "import/executed.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\r\n"
#define LINES  64 /* that may be none before the first that is an instruction */

/* The next word; its length is 0 at the end. */
static struct tl_bytes next_word(const char **p)
{
    *p += strspn(*p, BLANKS);
    const struct tl_bytes word = {(const uint8_t *)*p, strcspn(*p, BLANKS)};
    *p += word.n;
    return word;
}

/* Is it a number to this base, and nothing else? */
static bool number(struct tl_bytes word, int base, uint64_t *out)
{
    char text[32];
    char *end;
    if (word.n == 0 || word.n >= sizeof text || !isxdigit(word.p[0]))
        return false;
    memcpy(text, word.p, word.n);
    text[word.n] = '\0';
    *out = strtoull(text, &end, base);
    return *end == '\0';
}

static bool begins(struct tl_bytes word, const char *text)
{
    return word.n > strlen(text) && memcmp(word.p, text, strlen(text)) == 0;
}

/* Bytes that a store of this encoding writes; 0: it is none. */
static unsigned store_size(uint32_t opcode, unsigned size)
{
    const unsigned kind = opcode >> 12 & 7;
    if (size == 4 && ((opcode & 0x7f) == 0x23 || (opcode & 0x7f) == 0x27))
        return 1u << (kind & 3);
    if (size == 2 && (opcode & 1) == 0 && opcode >> 15 & 1)
        return opcode >> 13 == 6 ? 4 : opcode >> 13 == 7 || opcode >> 13 == 5 ? 4 : 0;
    return 0;
}

/* "x9=0x00000000" was written, "x10:0x…" read; "PA:0x…" is where "store:0x…" went. */
static void take_content(struct tl_executed_insn *i, struct tl_bytes word, bool *has_place)
{
    const char *const text = (const char *)word.p;
    const char *const equals = memchr(text, '=', word.n);
    if (begins(word, "PA:")) {
        i->store_address = strtoull(text + 3, NULL, 16);
        *has_place = true;
    } else if (begins(word, "store:")) {
        i->store_value = strtoull(text + 6, NULL, 16);
        i->stores = true;
    } else if (equals && word.n > 3 && (*text == 'x' || *text == 'f') &&
               isdigit((unsigned char)text[1])) {
        tl_executed_write(i, *text == 'x' ? TL_STF_REG_INT : TL_STF_REG_FP,
                          strtoull(text + 1, NULL, 10), strtoull(equals + 1, NULL, 16));
    }
}

/* Is the line an instruction? `*is_64`: its address has 64 bits. */
static bool take_line(struct tl_executed_insn *i, const char *p, bool *is_64)
{
    struct tl_bytes word = next_word(&p);
    uint64_t value, opcode;
    bool has_place = false;
    if (!number(word, 10, &value)) /* the time */
        return false;
    word = next_word(&p);
    if (word.n && isalpha(word.p[0]) && !number(word, 10, &value)) /* its unit */
        word = next_word(&p);
    if (!number(word, 10, &value)) /* the cycle */
        return false;
    word = next_word(&p);
    if (!number(word, 16, &i->pc))
        return false;
    *is_64 = word.n > 8;
    word = next_word(&p);
    if (!number(word, 16, &opcode))
        return false;
    i->size = (opcode & 3) == 3 ? 4 : 2;
    i->opcode = (uint32_t)opcode & (i->size == 4 ? UINT32_MAX : 0xffff);
    while ((word = next_word(&p)).n > 0)
        take_content(i, word, &has_place);
    i->store_size = store_size(i->opcode, i->size);
    i->stores = i->stores && has_place && i->store_size > 0;
    return word.p != NULL;
}

bool tl_rtl_log_is(const char *first, size_t n)
{
    char line[32];
    snprintf(line, sizeof line, "%.*s", (int)(n < sizeof line ? n : sizeof line - 1), first);
    const char *p = line;
    const struct tl_bytes time = next_word(&p), cycle = next_word(&p);
    return time.n == 4 && memcmp(time.p, "Time", 4) == 0 && cycle.n > 0 && cycle.n <= 5 &&
           memcmp(cycle.p, "Cycle", cycle.n) == 0;
}

int tl_rtl_log_read(struct tl_buf *out, struct tl_model_input *in, struct tl_fail *fail)
{
    struct tl_executed to = {.fail = fail};
    const char *text;
    int rc = TL_OK;
    while (rc == TL_OK && (text = tl_model_next_line(in))) {
        struct tl_executed_insn insn = {0};
        bool is_64 = false;
        if (take_line(&insn, text, &is_64))
            rc = tl_executed_add(&to, &insn, is_64,
                                 "log of a simulated core, read by tracelake " TL_VERSION);
        else if (to.begun && text[strspn(text, BLANKS)] && !tl_rtl_log_is(text, strlen(text)))
            tl_model_mark_strange(in);
        else if (to.count == 0 && in->line > LINES)
            rc = tl_fail_set(fail, TL_BAD,
                             "line %llu: no instruction so far; columns are time, cycle, address, "
                             "encoding",
                             (unsigned long long)in->line);
    }
    if (rc == TL_OK && (rc = tl_executed_finish(&to, out)) == TL_BAD)
        tl_fail_set(fail, TL_BAD, "this log has no instruction");
    tl_model_end_lines(in);
    tl_executed_fini(&to);
    return rc;
}
