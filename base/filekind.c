/* SPDX-License-Identifier: MIT */
/*
 * Tells packed files, archives, programs and text apart by their first bytes. Decoding a packed
 * capture would give only losses, of which nobody guesses the reason.
 */
#include "base/filekind.h"

#include <stdbool.h>
#include <string.h>

enum { TAR_MAGIC = 257, TEXT_MIN = 16 };

static bool begins(struct tl_bytes head, size_t at, const char *with, size_t n)
{
    return head.n >= at + n && !memcmp(head.p + at, with, n);
}

static bool is_text(struct tl_bytes head)
{
    const size_t n = head.n < TL_FILE_KIND_BYTES ? head.n : TL_FILE_KIND_BYTES;
    for (size_t i = 0; i < n; i++)
        if (head.p[i] == 0x7f || (head.p[i] < ' ' && !strchr("\t\n\r\f", head.p[i])) || !head.p[i])
            return false;
    return n >= TEXT_MIN;
}

enum tl_file_kind tl_file_kind(struct tl_bytes head)
{
    static const struct {
        enum tl_file_kind kind;
        unsigned char at, n;
        const char *magic;
    } known[] = {
        {TL_FILE_ELF, 0, 4, "\177ELF"},
        {TL_FILE_GZIP, 0, 3, "\x1f\x8b\x08"},
        {TL_FILE_XZ, 0, 6,
         "\xfd"
         "7zXZ\0"},
        {TL_FILE_ZSTD, 0, 4, "\x28\xb5\x2f\xfd"},
        {TL_FILE_BZIP2, 4, 6, "1AY&SY"},
        {TL_FILE_ZIP, 0, 4, "PK\3\4"},
        {TL_FILE_SEVENZIP, 0, 6, "7z\xbc\xaf\x27\x1c"},
        {TL_FILE_AR, 0, 8, "!<arch>\n"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (begins(head, known[i].at, known[i].magic, known[i].n))
            return known[i].kind;
    if (begins(head, TAR_MAGIC, "ustar", 5))
        return TL_FILE_TAR;
    return is_text(head) ? TL_FILE_TEXT : TL_FILE_UNKNOWN;
}

const char *tl_file_kind_packed(enum tl_file_kind kind)
{
    switch (kind) {
    case TL_FILE_GZIP:
        return "is packed by gzip: unpack it first (gzip -d)";
    case TL_FILE_XZ:
        return "is packed by xz: unpack it first (xz -d)";
    case TL_FILE_ZSTD:
        return "is packed by zstd: unpack it first (zstd -d)";
    case TL_FILE_BZIP2:
        return "is packed by bzip2: unpack it first (bzip2 -d)";
    case TL_FILE_ZIP:
        return "is a zip archive: unpack it first (unzip)";
    case TL_FILE_SEVENZIP:
        return "is a 7z archive: unpack it first (7z x)";
    case TL_FILE_TAR:
        return "is a tar archive: unpack it first (tar -xf)";
    case TL_FILE_AR:
        return "is an ar archive (a library or a package): take the file that is in it (ar x)";
    case TL_FILE_UNKNOWN:
    case TL_FILE_ELF:
    case TL_FILE_TEXT:
        break;
    }
    return NULL;
}

const char *tl_file_kind_no_trace(enum tl_file_kind kind)
{
    return kind == TL_FILE_ELF ? "is a program (ELF), no trace: give it as --image"
                               : tl_file_kind_packed(kind);
}

const char *tl_file_kind_no_program(enum tl_file_kind kind)
{
    return kind == TL_FILE_TEXT ? "is text, no program: give the ELF file or a dump of memory"
                                : tl_file_kind_packed(kind);
}
