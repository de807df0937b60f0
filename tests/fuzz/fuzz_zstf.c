/* SPDX-License-Identifier: MIT */
/*
 * The .zstf container and the rules of `tracelake check`. If the first byte is even the rest is a
 * file; if it is odd the rest is plain STF, which is cut here and compressed into chunks that may
 * violate any rule, so that the code after the decompressor is reached.
 */
#include "stf/insns.h"
#include "stf/tools/check.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static int ignore(void *context, const struct tl_stf_finding *finding)
{
    uint64_t *const n = context;
    must(finding->rule && finding->text[0] && finding->severity <= TL_STF_ERROR);
    ++*n;
    return TL_OK;
}

static void check(struct tl_bytes bytes)
{
    struct tl_stf_file *file;
    struct tl_stf_checker *checker;
    uint64_t findings = 0;
    if (tl_stf_file_bytes(&file, bytes, NULL) < 0)
        return;
    must(tl_stf_checker_new(&checker, ignore, &findings) == TL_OK);
    (void)!tl_stf_check_file(file, checker, ignore, &findings, NULL);
    tl_stf_checker_free(checker);
    tl_stf_file_close(file);
}

/* Count the instructions from `at` on, and get the address of the first. Returns < 0 if the bytes
 * do not end properly. */
static int64_t count(struct tl_bytes bytes, uint64_t at, uint64_t *pc)
{
    struct tl_stf_file *file;
    struct tl_stf_insns *insns;
    struct tl_stf_insn batch[16];
    int64_t n = 0;
    int got;
    if (tl_stf_file_bytes(&file, bytes, NULL) < 0)
        return -1;
    const struct tl_stf_source source = tl_stf_file_source(file);
    must(tl_stf_insns_open(&insns, &source) == TL_OK);
    got = at ? tl_stf_insns_seek(insns, at, NULL) : TL_OK;
    while (got >= 0 && (got = tl_stf_insns_read(insns, batch, 16, NULL)) > 0) {
        if (n == 0)
            *pc = batch[0].pc;
        n += got;
    }
    tl_stf_insns_free(insns);
    tl_stf_file_close(file);
    return got == TL_EOF ? n : -1;
}

/* Read from the beginning, without the index: there are as many bytes as in the chunks. */
static size_t unpack(struct tl_bytes bytes)
{
    struct tl_stf_unpack *u;
    struct tl_buf out = {0};
    size_t n = 0;
    must(tl_stf_unpack_new(&u) == TL_OK);
    for (bool more = true; more && n < (8u << 20);) {
        const size_t before = bytes.n;
        tl_buf_reset(&out);
        if (tl_stf_unpack_push(u, &bytes, &out, NULL) < 0)
            break;
        n += out.n;
        more = out.n || bytes.n < before;
    }
    (void)!tl_stf_unpack_finish(u, NULL);
    tl_stf_unpack_free(u);
    tl_buf_fini(&out);
    return n;
}

/* Compress `plain` into chunks, cut as given by `how`, with an index that may be wrong. */
static void pack(struct tl_bytes plain, const uint8_t how[4], struct tl_buf *file)
{
    struct tl_zstf_writer *w;
    uint8_t head[TL_ZSTF_HEAD];
    const uint64_t markers = 1 + how[0] % 8;
    must(tl_zstf_writer_new(&w, markers, 1) == TL_OK);
    must(tl_zstf_writer_begin(w, file) == TL_OK);
    for (unsigned i = 0, chunks = 1 + how[1] % 4; i < chunks; i++) {
        size_t n = i + 1 == chunks ? plain.n : plain.n / (2 + how[2] % 5);
        must(tl_zstf_writer_chunk(w, (struct tl_bytes){plain.p, n}, markers, how[3] * i, file) ==
             TL_OK);
        plain.p += n;
        plain.n -= n;
    }
    must(tl_zstf_writer_finish(w, (struct tl_bytes){0}, file, head) == TL_OK);
    memcpy(file->p, head, sizeof head);
    tl_zstf_writer_free(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 5)
        return 0;
    const struct tl_bytes rest = {data + 5, size - 5};
    struct tl_buf file = {0};
    struct tl_bytes bytes = rest;
    if (data[0] & 1) {
        pack(rest, data + 1, &file);
        bytes = (struct tl_bytes){file.p, file.n};
        must(unpack(bytes) == rest.n);
    } else {
        unpack(bytes);
    }
    check(bytes);
    uint64_t pc = 0;
    const int64_t all = count(bytes, 0, &pc);
    count(bytes, data[4], &pc);
    if (all > 0)
        must(count(bytes, (uint64_t)all - 1, &pc) <= all);
    tl_buf_fini(&file);
    return 0;
}
