/* SPDX-License-Identifier: MIT */
/*
 * SQLite sorts rows in runs that it writes to a file and merges, which is several times as fast as
 * its sorting of rows in memory, one allocation each, and needs a fraction of the memory. Files on
 * a medium would be bounded by nothing, so these are pieces of memory.
 */
#include "sql/tempfile.h"

#include "base/buf.h"
#include "sql/memory.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#define PIECE ((size_t)256 << 10)

struct file {
    sqlite3_file base;
    uint8_t **pieces;
    size_t n, cap;
    sqlite3_int64 size;
};

/* ---- files ----------------------------------------------------------------------------------- */

/* Keep the first `n` pieces. */
static void keep_pieces(struct file *f, size_t n)
{
    for (; f->n > n; f->n--) {
        free(f->pieces[f->n - 1]);
        tl_sql_memory_gives(PIECE);
    }
}

static int close_file(sqlite3_file *base)
{
    struct file *const f = (struct file *)base;
    keep_pieces(f, 0);
    free(f->pieces);
    return SQLITE_OK;
}

/* Copy from or to the file, piece by piece. */
static void copy(const struct file *f, sqlite3_int64 at, uint8_t *bytes, size_t n, bool in)
{
    while (n > 0) {
        const size_t begin = (size_t)at % PIECE;
        const size_t part = n < PIECE - begin ? n : PIECE - begin;
        uint8_t *const there = f->pieces[(size_t)at / PIECE] + begin;
        memcpy(in ? there : bytes, in ? bytes : there, part);
        at += (sqlite3_int64)part;
        bytes += part;
        n -= part;
    }
}

static int read_file(sqlite3_file *base, void *out, int n, sqlite3_int64 at)
{
    const struct file *const f = (const struct file *)base;
    const sqlite3_int64 there = at < f->size ? f->size - at : 0;
    const int part = n < there ? n : (int)there;
    copy(f, at, out, (size_t)part, false);
    memset((uint8_t *)out + part, 0, (size_t)(n - part));
    return part < n ? SQLITE_IOERR_SHORT_READ : SQLITE_OK;
}

static int add_piece(struct file *f)
{
    if (tl_grow(&f->pieces, &f->cap, f->n + 1, sizeof *f->pieces) < 0)
        return SQLITE_NOMEM;
    if (!tl_sql_memory_takes(PIECE))
        return SQLITE_FULL;
    f->pieces[f->n] = calloc(1, PIECE);
    if (f->pieces[f->n]) {
        f->n++;
        return SQLITE_OK;
    }
    tl_sql_memory_gives(PIECE);
    return SQLITE_NOMEM;
}

static int write_file(sqlite3_file *base, const void *bytes, int n, sqlite3_int64 at)
{
    struct file *const f = (struct file *)base;
    const sqlite3_int64 end = at + n;
    int r = SQLITE_OK;
    while (r == SQLITE_OK && (sqlite3_int64)(f->n * PIECE) < end)
        r = add_piece(f);
    if (r != SQLITE_OK)
        return r;
    copy(f, at, (uint8_t *)(uintptr_t)bytes, (size_t)n, true); /* only read */
    f->size = end > f->size ? end : f->size;
    return SQLITE_OK;
}

static int truncate_file(sqlite3_file *base, sqlite3_int64 size)
{
    struct file *const f = (struct file *)base;
    f->size = size < f->size ? size : f->size;
    keep_pieces(f, ((size_t)f->size + PIECE - 1) / PIECE);
    return SQLITE_OK;
}

static int size_file(sqlite3_file *base, sqlite3_int64 *out)
{
    *out = ((const struct file *)base)->size;
    return SQLITE_OK;
}

static int sync_file(sqlite3_file *base, int flags)
{
    (void)base;
    (void)flags;
    return SQLITE_OK;
}

static int lock_file(sqlite3_file *base, int level)
{
    (void)base;
    (void)level;
    return SQLITE_OK;
}

static int is_locked(sqlite3_file *base, int *out)
{
    (void)base;
    *out = 0;
    return SQLITE_OK;
}

static int control_file(sqlite3_file *base, int what, void *argument)
{
    (void)base;
    (void)what;
    (void)argument;
    return SQLITE_NOTFOUND;
}

static int no_sector(sqlite3_file *base)
{
    (void)base;
    return 0;
}

static const sqlite3_io_methods methods = {
    .iVersion = 1,
    .xClose = close_file,
    .xRead = read_file,
    .xWrite = write_file,
    .xTruncate = truncate_file,
    .xSync = sync_file,
    .xFileSize = size_file,
    .xLock = lock_file,
    .xUnlock = lock_file,
    .xCheckReservedLock = is_locked,
    .xFileControl = control_file,
    .xSectorSize = no_sector,
    .xDeviceCharacteristics = no_sector,
};

/* ---- the file system ------------------------------------------------------------------------- */

/* Temporary files have no name. */
static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *out, int flags, int *given)
{
    struct file *const f = (struct file *)out;
    (void)vfs;
    f->base.pMethods = NULL; /* nothing is to be closed */
    if (name)
        return SQLITE_CANTOPEN;
    *f = (struct file){.base.pMethods = &methods};
    if (given)
        *given = flags;
    return SQLITE_OK;
}

static int remove_file(sqlite3_vfs *vfs, const char *name, int sync)
{
    (void)vfs;
    (void)name;
    (void)sync;
    return SQLITE_OK;
}

static int look_for(sqlite3_vfs *vfs, const char *name, int what, int *out)
{
    (void)vfs;
    (void)name;
    (void)what;
    *out = 0;
    return SQLITE_OK;
}

static int full_name(sqlite3_vfs *vfs, const char *name, int n, char *out)
{
    (void)vfs;
    sqlite3_snprintf(n, out, "%s", name);
    return SQLITE_OK;
}

static sqlite3_vfs vfs; /* the rest is that of the default one */
static const char *registered;

static void register_once(void)
{
    const sqlite3_vfs *const usual =
        sqlite3_initialize() == SQLITE_OK ? sqlite3_vfs_find(NULL) : NULL;
    if (!usual)
        return;
    vfs = *usual;
    vfs.szOsFile = sizeof(struct file);
    vfs.pNext = NULL;
    vfs.zName = "tracelake-temp";
    vfs.xOpen = open_file;
    vfs.xDelete = remove_file;
    vfs.xAccess = look_for;
    vfs.xFullPathname = full_name;
    if (sqlite3_vfs_register(&vfs, 0) == SQLITE_OK)
        registered = vfs.zName;
}

const char *tl_sql_tempfiles(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_once);
    return registered;
}
