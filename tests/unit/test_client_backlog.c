/* SPDX-License-Identifier: MIT */
/* Bytes between input and server: everything put in comes out again, from memory, from files, and
 * after the process that put it there has ended. */
#include "push/backlog.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { SPAN = 6 << 20, STEP = 40000 };

static uint8_t truth[SPAN];

static void make_truth(void)
{
    srand(7);
    for (size_t i = 0; i < SPAN; i++)
        truth[i] = (uint8_t)(rand() >> 5);
}

static char *new_folder(char *name)
{
    strcpy(name, "/tmp/tl-backlog-XXXXXX");
    return mkdtemp(name);
}

/* Remove the folder's files; returns their total size. */
static uint64_t empty(const char *folder)
{
    uint64_t bytes = 0;
    DIR *const dir = opendir(folder);
    const struct dirent *entry;
    while ((entry = readdir(dir))) {
        struct stat st;
        if (entry->d_name[0] == '.')
            continue;
        assert_int_equal(fstatat(dirfd(dir), entry->d_name, &st, 0), 0);
        bytes += (uint64_t)st.st_size;
        unlinkat(dirfd(dir), entry->d_name, 0);
    }
    closedir(dir);
    return bytes;
}

/* Read some of the expected bytes in, as far as there is capacity. */
static void put(struct tl_backlog *b, int into, int from)
{
    const uint64_t end = tl_backlog_end(b);
    const ssize_t room = tl_backlog_room(b);
    size_t n = 1 + (size_t)rand() % STEP;
    assert_true(room >= 0);
    n = n < (size_t)room ? n : (size_t)room;
    n = n < SPAN - end ? n : SPAN - end;
    if (n == 0)
        return;
    assert_int_equal(write(into, truth + end, n), n);
    for (size_t done = 0; done < n;) {
        const ssize_t got = tl_backlog_read(b, from, n - done);
        assert_true(got > 0);
        assert_int_equal(tl_backlog_end(b), end + done); /* not there yet */
        tl_backlog_commit(b, (size_t)got);
        done += (size_t)got;
    }
}

static void look(struct tl_backlog *b)
{
    const uint64_t begin = tl_backlog_begin(b), end = tl_backlog_end(b);
    const uint64_t at = begin + (uint64_t)rand() % (end - begin + 1);
    uint8_t bytes[STEP];
    const ssize_t got = tl_backlog_get(b, at, bytes, 1 + (size_t)rand() % STEP);
    assert_true(got > 0 || (got == 0 && at == end));
    assert_memory_equal(bytes, truth + at, (size_t)got);
}

/* Random puts, looks and drops; with a folder, the process "dies" from time to time. */
static void run(const char *folder, int from, int into)
{
    const uint64_t most = 1 << 20;
    struct tl_backlog *b;
    struct tl_fail fail;
    unsigned full = 0;
    assert_int_equal(
        folder ? tl_backlog_folder(&b, folder, most, &fail) : tl_backlog_memory(&b, most), TL_OK);
    while (tl_backlog_end(b) < SPAN) {
        const uint64_t begin = tl_backlog_begin(b), end = tl_backlog_end(b);
        put(b, into, from);
        look(b);
        full += tl_backlog_room(b) == 0;
        assert_true(tl_backlog_end(b) - tl_backlog_begin(b) <= most);
        if (rand() % 30 == 0)
            tl_backlog_drop(b, begin + (uint64_t)rand() % (end - begin + 1));
        if (tl_backlog_room(b) == 0)
            tl_backlog_drop(b, end);
        if (folder && rand() % 20 == 0) {
            const uint64_t before = tl_backlog_end(b);
            tl_backlog_free(b);
            assert_int_equal(tl_backlog_folder(&b, folder, most, &fail), TL_OK);
            assert_int_equal(tl_backlog_end(b), before);
            assert_true(tl_backlog_begin(b) <= begin + most);
        }
    }
    assert_true(full > 0);
    tl_backlog_drop(b, SPAN);
    tl_backlog_free(b);
}

static void in_memory(void **state)
{
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    run(NULL, fds[0], fds[1]);
    close(fds[0]);
    close(fds[1]);
}

static void in_files_of_a_pipe(void **state)
{
    char folder[64];
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    assert_non_null(new_folder(folder));
    run(folder, fds[0], fds[1]);
    assert_true(empty(folder) <= 1 << 17); /* the file being written */
    assert_int_equal(rmdir(folder), 0);
    close(fds[0]);
    close(fds[1]);
}

/* Input that cannot be spliced is copied through memory. */
static void in_files_of_a_file(void **state)
{
    char folder[64], path[64] = "/tmp/tl-backlog-XXXXXX";
    const int into = mkstemp(path);
    const int from = open(path, O_RDONLY);
    assert_non_null(new_folder(folder));
    run(folder, from, into);
    empty(folder);
    assert_int_equal(rmdir(folder), 0);
    close(from);
    close(into);
    unlink(path);
}

static void a_file_is_missing(void **state)
{
    char folder[64], name[128];
    struct tl_backlog *b;
    struct tl_fail fail = {0};
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    assert_non_null(new_folder(folder));
    assert_int_equal(tl_backlog_folder(&b, folder, 1 << 20, &fail), TL_OK);
    while (tl_backlog_end(b) < 400000)
        put(b, fds[1], fds[0]);
    tl_backlog_free(b);
    snprintf(name, sizeof name, "%s/%016x.raw", folder, 1 << 17);
    assert_int_equal(unlink(name), 0);
    assert_int_equal(tl_backlog_folder(&b, folder, 1 << 20, &fail), TL_BAD);
    assert_non_null(strstr(fail.text, "bytes are missing before byte 262144"));
    empty(folder);
    assert_int_equal(rmdir(folder), 0);
    close(fds[0]);
    close(fds[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_memory),
        cmocka_unit_test(in_files_of_a_pipe),
        cmocka_unit_test(in_files_of_a_file),
        cmocka_unit_test(a_file_is_missing),
    };
    make_truth();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
