/* SPDX-License-Identifier: MIT */
/*
 * The dump says how the encoder was built and how far its buffer was written, so that users need no
 * setup. A buffer that was written round and round is two parts, and no packet goes from the end of
 * one to the beginning of the other: each is cut to its whole packets, and the running number tells
 * the decoder what is missing between them.
 */
#include "import/esp_dump.h"

#include "base/bytes.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX   ((size_t)256 << 20)
#define HEADER_MAX 4096u /* bytes in front of the ELF file */
#define SEGMENTS   1024u /* program headers that are looked at: a chip's memory has some ten */

enum {
    NOTE = 680,
    HEADER = 80, /* bytes of the note's header, and of a record, at least */
    RECORD = 44,
    FRAME_MIN = 4, /* bytes of a packet with its header */
    FRAME_MAX = 13,
    CERTAIN = 4 /* packets in a row with running numbers */
};

struct dump {
    struct tl_buf file; /* the ELF file, or with a header in front */
    bool is_text;       /* it was text: its bytes are not those of the file */
    size_t elf;         /* offset of the ELF file */
    struct tl_bytes note;
};

/* ---- packets ------------------------------------------------------------------------------- */

/* The packet at `at`, behind empty bytes. Returns where it ends, `*at` where it begins; 0: none. */
static size_t next_packet(struct tl_bytes in, size_t *at)
{
    while (*at < in.n && in.p[*at] == 0)
        ++*at;
    if (*at == in.n || in.p[*at] < FRAME_MIN || in.p[*at] > FRAME_MAX || in.n - *at < in.p[*at])
        return 0;
    return *at + in.p[*at];
}

/* Are there packets with running numbers from `at` on, CERTAIN of them, or up to the end? */
static bool is_begin(struct tl_bytes in, size_t at)
{
    unsigned n = 0;
    uint16_t number = 0;
    for (size_t end; n < CERTAIN && (end = next_packet(in, &at)) > 0; at = end, n++) {
        const uint16_t this = tl_le16(in.p + at + 1);
        if (n > 0 && this != (uint16_t)(number + 1))
            return false;
        number = this;
    }
    return n == CERTAIN || (n > 1 && at == in.n);
}

/*
 * The packets in a part of a buffer of trace, which may begin and end within one: from `*from` up
 * to
 * `*to`. Bytes are empty, or those of a packet. False: there are none.
 */
static bool find_packets(struct tl_bytes in, size_t *from, size_t *to)
{
    size_t at = 0, end;
    while (at < in.n && (in.p[at] == 0 || !is_begin(in, at)))
        at++;
    *from = *to = at;
    /* What has an earlier number is left from the round before. */
    uint16_t last = at < in.n ? (uint16_t)(tl_le16(in.p + at + 1) - 1) : 0;
    for (; at < in.n && (end = next_packet(in, &at)) > 0; at = end) {
        const uint16_t step = (uint16_t)(tl_le16(in.p + at + 1) - last);
        if (step == 0 || step >= 0x8000)
            break;
        last = (uint16_t)(last + step);
        *to = end;
    }
    return *to > *from;
}

/* ---- the file ------------------------------------------------------------------------------ */

/* Value of a digit of base 64; -1: it is none. */
static int digit(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *const at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* Each line between the marks is base 64 by itself. */
static int decode_text(struct tl_buf *file)
{
    struct tl_buf out = {0};
    const char *line = (const char *)file->p, *const end = line + file->n;
    const char *const start = memmem(line, file->n, "CORE DUMP START", 15);
    int rc = TL_OK;
    line = start ? memchr(start, '\n', (size_t)(end - start)) : NULL;
    while (line && ++line < end && *line != '=' && rc == TL_OK) {
        uint32_t bits = 0;
        unsigned n = 0;
        for (; line < end && *line != '\n' && digit(*line) >= 0 && rc == TL_OK; line++) {
            bits = bits << 6 | (uint32_t)digit(*line);
            n += 6;
            if (n >= 8) {
                n -= 8;
                rc = tl_buf_add(&out, &(uint8_t){(uint8_t)(bits >> n)}, 1);
            }
        }
        line = memchr(line, '\n', (size_t)(end - line));
    }
    tl_buf_fini(file);
    *file = out;
    return rc;
}

/* A core file of RISC-V, little-endian, 32 bits wide. */
static bool is_core(struct tl_bytes in)
{
    static const uint8_t magic[] = {0x7f, 'E', 'L', 'F', ELFCLASS32, ELFDATA2LSB};
    return in.n >= sizeof(Elf32_Ehdr) && !memcmp(in.p, magic, sizeof magic) &&
           tl_le16(in.p + offsetof(Elf32_Ehdr, e_type)) == ET_CORE &&
           tl_le16(in.p + offsetof(Elf32_Ehdr, e_machine)) == EM_RISCV;
}

static bool find_elf(struct tl_bytes in, size_t *at)
{
    for (*at = 0; *at < in.n && *at <= HEADER_MAX; ++*at)
        if (is_core((struct tl_bytes){in.p + *at, in.n - *at}))
            return true;
    return false;
}

bool tl_esp_dump_is(const char *path)
{
    uint8_t head[2 * HEADER_MAX];
    const size_t n = strlen(path);
    FILE *const file = fopen(path, "rb");
    if (!file)
        return false;
    const struct tl_bytes in = {head, fread(head, 1, sizeof head, file)};
    size_t at;
    fclose(file);
    return find_elf(in, &at) || memmem(in.p, in.n, "CORE DUMP START", 15) ||
           (in.n >= 4 && !memcmp(in.p, "RVTS", 4)) || (n > 9 && !strcmp(path + n - 9, ".esptrace"));
}

/* ---- the note ------------------------------------------------------------------------------ */

static struct tl_bytes elf_of(const struct dump *d)
{
    return (struct tl_bytes){d->file.p + d->elf, d->file.n - d->elf};
}

/* Program header `i`, if its bytes are there. All notes are read for each, so they are limited. */
static bool segment_at(const struct dump *d, uint32_t i, Elf32_Phdr *out)
{
    const struct tl_bytes in = elf_of(d);
    const uint64_t at = tl_le32(in.p + offsetof(Elf32_Ehdr, e_phoff)) + (uint64_t)i * sizeof *out;
    if (tl_le16(in.p + offsetof(Elf32_Ehdr, e_phentsize)) != sizeof *out || i >= SEGMENTS ||
        i >= tl_le16(in.p + offsetof(Elf32_Ehdr, e_phnum)) || in.n < sizeof *out ||
        at > in.n - sizeof *out)
        return false;
    const uint8_t *const p = in.p + at;
    *out = (Elf32_Phdr){.p_type = tl_le32(p),
                        .p_offset = tl_le32(p + 4),
                        .p_vaddr = tl_le32(p + 8),
                        .p_filesz = tl_le32(p + 16)};
    if (out->p_offset > in.n || out->p_filesz > in.n - out->p_offset)
        out->p_type = PT_NULL;
    return true;
}

/* The trace's note among those of a segment. */
static bool find_note(struct tl_bytes in, struct tl_bytes *out)
{
    static const char owner[] = "ESP_RISCV_TRACE";
    while (in.n >= 12) {
        const uint64_t name = (tl_le32(in.p) + UINT64_C(3)) & ~UINT64_C(3);
        const uint64_t desc = tl_le32(in.p + 4);
        const uint64_t all = 12 + name + ((desc + 3) & ~UINT64_C(3));
        if (12 + name + desc > in.n)
            return false;
        *out = (struct tl_bytes){in.p + 12 + name, (size_t)desc};
        if (tl_le32(in.p + 8) == NOTE && name >= sizeof owner &&
            !memcmp(in.p + 12, owner, sizeof owner))
            return true;
        in.p += all < in.n ? all : in.n;
        in.n -= all < in.n ? all : in.n;
    }
    return false;
}

static int read_dump(struct dump *d, const char *path, struct tl_fail *fail)
{
    Elf32_Phdr s;
    int rc = tl_buf_read_file(&d->file, path, FILE_MAX, fail);
    if (rc < 0)
        return rc;
    if (!find_elf((struct tl_bytes){d->file.p, d->file.n}, &d->elf)) {
        d->is_text = true;
        rc = decode_text(&d->file);
    }
    if (rc < 0)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    if (!find_elf((struct tl_bytes){d->file.p, d->file.n}, &d->elf))
        return tl_fail_set(fail, TL_UNSUPPORTED,
                           "is no core dump; the layout of .esptrace files is not published: use a "
                           "core dump, or the buffer's bytes with --format etrace-esp32");
    for (uint32_t i = 0; segment_at(d, i, &s); i++)
        if (s.p_type == PT_NOTE &&
            find_note((struct tl_bytes){elf_of(d).p + s.p_offset, s.p_filesz}, &d->note))
            break;
    const uint8_t *const p = d->note.p;
    if (d->note.n < HEADER || memcmp(p, "RVTS", 4) != 0)
        return tl_fail_set(fail, TL_BAD, "the core dump has no trace");
    if (tl_le32(p + 4) % 2)
        return tl_fail_set(fail, TL_BAD, "the core dump was made while its trace was written");
    if (p[12] != 1 || p[14] < HEADER || p[15] < RECORD)
        return tl_fail_set(fail, TL_UNSUPPORTED, "the trace has version %u.%u; 1 is known", p[12],
                           p[13]);
    return TL_OK;
}

/* ---- captures ------------------------------------------------------------------------------ */

static void warn(const struct tl_bundle_request *request, unsigned core, const char *text)
{
    char line[160];
    snprintf(line, sizeof line, "core %u: %s", core, text);
    if (request->warn)
        request->warn(request->context, line);
}

/* The encoder, by the parameters that the dump has of it. */
static int make_setup(struct tl_setup *setup, const struct dump *d, const uint8_t *record,
                      struct tl_fail *fail)
{
    static const struct {
        uint8_t at;
        const char *name;
    } parameters[] = {{3, "bpred_size_p"},         {4, "cache_size_p"},
                      {5, "call_counter_size_p"},  {8, "ecause_width_p"},
                      {10, "f0s_width_p"},         {15, "iaddress_lsb_p"},
                      {16, "iaddress_width_p"},    {22, "privilege_width_p"},
                      {24, "return_stack_size_p"}, {25, "sijump_p"}};
    enum { PARAMETERS = 52, CONTEXT_WIDTH = 7, NO_CONTEXT = 20, PT10 = 100 };
    const uint8_t *const p = d->note.p + PARAMETERS;
    int rc = tl_setup_format(setup, "etrace-esp32", fail);
    struct tl_source *const source = rc == TL_OK ? tl_setup_add_source(setup) : NULL;
    if (!source)
        return rc < 0 ? rc : tl_fail_set(fail, TL_NOMEM, "out of memory");
    source->protocol = TL_PROTO_E_TRACE;
    source->id = record[0];
    snprintf(source->name, sizeof source->name, "et.%u", record[0]);
    snprintf(source->core, sizeof source->core, "rv32");
    snprintf(source->type, sizeof source->type, "%s", record[3] == PT10 ? "esp32" : "esp32-2.0");
    for (size_t i = 0; rc == TL_OK && i < sizeof parameters / sizeof *parameters; i++)
        rc = tl_source_set_reg(source, parameters[i].name, p[parameters[i].at]);
    if (rc == TL_OK && !p[NO_CONTEXT])
        rc = tl_source_set_reg(source, "context_width_p", p[CONTEXT_WIDTH]);
    return rc;
}

/* Add the packets of a part of the buffer, which is at `at` of the dump. */
static int add_part(struct tl_bundle_capture *c, const struct dump *d, const char *path, size_t at,
                    size_t n)
{
    size_t from, to;
    if (!find_packets((struct tl_bytes){d->file.p + at, n}, &from, &to))
        return TL_OK;
    if (!d->is_text)
        return tl_bundle_add(c, path, at + from, to - from);
    return tl_bundle_add_bytes(c, path, (struct tl_bytes){d->file.p + at + from, to - from});
}

/* Where the core's buffer is in the dump, and how many bytes it has; false: it is not there. */
static bool find_buffer(const struct dump *d, const uint8_t *record, size_t *at, size_t *n)
{
    Elf32_Phdr s;
    const uint32_t address = tl_le32(record + 16), capacity = tl_le32(record + 24);
    for (uint32_t i = 0; segment_at(d, i, &s); i++)
        if (s.p_type == PT_LOAD && s.p_vaddr == address && s.p_filesz >= capacity) {
            *at = d->elf + s.p_offset;
            *n = capacity;
            return capacity > 0;
        }
    return false;
}

static bool are_zeros(const uint8_t *p, size_t n)
{
    return n == 0 || (p[0] == 0 && !memcmp(p, p + 1, n - 1));
}

/* The core's trace as pieces, oldest first. */
static int add_buffer(struct tl_bundle_capture *c, const struct dump *d, const uint8_t *record,
                      const struct tl_bundle_request *request)
{
    enum { STOPPED = 3, FROZEN = 4, LOOP = 2, NEVER = 1 };
    const size_t head = tl_le32(record + 28);
    size_t at, n;
    if (record[1] != STOPPED && record[1] != FROZEN) {
        warn(request, record[0], "its trace had not been stopped");
        return TL_OK;
    }
    if (!find_buffer(d, record, &at, &n) || !record[7] || head > n) {
        warn(request, record[0], "its trace is not in the dump");
        return TL_OK;
    }
    if (!record[8])
        warn(request, record[0], "its last packets are not in the dump");
    if (record[10])
        warn(request, record[0], "packets were lost since its encoder was too slow");
    const bool wrapped = record[2] == LOOP && !are_zeros(d->file.p + at + head, n - head);
    if (wrapped && (record[5] == NEVER || tl_le32(record + 32) == 0)) {
        warn(request, record[0],
             "its buffer went round without synchronisation: set a resync threshold");
        return TL_OK;
    }
    const int rc = wrapped ? add_part(c, d, request->input, at + head, n - head) : TL_OK;
    return rc < 0 ? rc : add_part(c, d, request->input, at, head);
}

/* Say which program ran, by its hash, where none is given. */
static void ask_for_program(const struct dump *d, const struct tl_bundle_request *request)
{
    char text[200];
    int n = snprintf(text, sizeof text, "give the program by --image: the ELF file with SHA-256 ");
    for (unsigned i = 0; i < 32; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%02x", d->note.p[20 + i]);
    if (request->warn && request->n_images == 0)
        request->warn(request->context, text);
}

static int add_cores(struct tl_bundle *out, const struct dump *d,
                     const struct tl_bundle_request *request, struct tl_fail *fail)
{
    const size_t header = d->note.p[14], size = d->note.p[15], n = d->note.p[16];
    int rc = TL_OK;
    out->captures = calloc(n ? n : 1, sizeof *out->captures);
    if (!out->captures)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    for (size_t i = 0; rc == TL_OK && i < n && header + (i + 1) * size <= d->note.n; i++) {
        const uint8_t *const record = d->note.p + header + i * size;
        struct tl_bundle_capture *const c = &out->captures[out->n_captures];
        tl_setup_init(&c->setup);
        snprintf(c->name, sizeof c->name, "core%u", record[0]);
        snprintf(c->first, sizeof c->first, "et.%u", record[0]);
        rc = add_buffer(c, d, record, request);
        if (rc == TL_OK && c->n_pieces > 0)
            rc = make_setup(&c->setup, d, record, fail);
        for (size_t k = 0; rc == TL_OK && c->n_pieces > 0 && k < request->n_images; k++)
            rc = tl_setup_add_image(&c->setup, request->images[k], fail);
        if (rc < 0 || c->n_pieces == 0)
            tl_bundle_capture_fini(c);
        else
            out->n_captures++;
    }
    if (rc == TL_OK && out->n_captures == 0)
        rc = tl_fail_set(fail, TL_BAD, "no core's trace is in the dump");
    return rc;
}

int tl_esp_dump_read(struct tl_bundle *out, const struct tl_bundle_request *request,
                     struct tl_fail *fail)
{
    struct dump d = {.is_text = false};
    *out = (struct tl_bundle){0};
    int rc = read_dump(&d, request->input, fail);
    if (rc == TL_OK && request->config)
        rc = tl_fail_set(fail, TL_USAGE, "a core dump brings its own configuration");
    if (rc == TL_OK)
        ask_for_program(&d, request);
    if (rc == TL_OK)
        rc = add_cores(out, &d, request, fail);
    tl_buf_fini(&d.file);
    if (rc < 0)
        tl_bundle_fini(out);
    return rc;
}
