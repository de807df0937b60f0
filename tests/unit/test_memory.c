/* SPDX-License-Identifier: MIT */
/* The memory that a process may use, by control groups of both versions, in a folder that stands
 * for the root. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[] = "/tmp/test_memory_XXXXXX";

/* Write a file below the root, and the folders that it needs. */
static void put(const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
        *p = '\0';
        (void)mkdir(path, 0700);
        *p = '/';
    }
    FILE *const f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void remove_one(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", root, name);
    assert_int_equal(remove(path), 0);
}

static void none_without_groups(void **state)
{
    (void)state;
    assert_int_equal(tl_memory_group_limit(root), UINT64_MAX);
    assert_true(tl_usable_memory() > 0 && tl_usable_memory() <= tl_memory_group_limit(""));
}

static void smallest_of_version_2(void **state)
{
    (void)state;
    put("proc/self/cgroup", "0::/a.slice/b.service\n");
    put("sys/fs/cgroup/a.slice/b.service/memory.max", "max\n");
    assert_int_equal(tl_memory_group_limit(root), UINT64_MAX);
    put("sys/fs/cgroup/a.slice/memory.max", "1073741824\n");
    assert_int_equal(tl_memory_group_limit(root), 1u << 30);
    put("sys/fs/cgroup/a.slice/b.service/memory.max", "536870912\n");
    assert_int_equal(tl_memory_group_limit(root), 1u << 29);
}

/* Other controllers' groups have no limit of memory, whatever their paths are. */
static void smallest_of_version_1(void **state)
{
    (void)state;
    put("proc/self/cgroup", "5:cpu,cpuacct:/c\n4:hugetlb,memory:/m/n\n3:memory2:/c\n0::/none\n");
    put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("sys/fs/cgroup/memory/c/memory.limit_in_bytes", "1\n");
    assert_int_equal(tl_memory_group_limit(root), UINT64_C(9223372036854771712));
    put("sys/fs/cgroup/memory/m/n/memory.limit_in_bytes", "268435456\n");
    assert_int_equal(tl_memory_group_limit(root), 1u << 28);
}

/* A container sees its own group as the root of /sys, though /proc tells the path outside. */
static void own_group_of_a_container(void **state)
{
    (void)state;
    put("proc/self/cgroup", "4:memory:/docker/0123\n");
    put("sys/fs/cgroup/memory/memory.limit_in_bytes", "134217728\n");
    assert_int_equal(tl_memory_group_limit(root), 1u << 27);
    put("proc/self/cgroup", "garbage\n::\n:memory\n");
    assert_int_equal(tl_memory_group_limit(root), UINT64_MAX);
}

static int begin(void **state)
{
    (void)state;
    return mkdtemp(root) ? 0 : -1;
}

static int end(void **state)
{
    static const char *const names[] = {"proc/self/cgroup",
                                        "proc/self",
                                        "proc",
                                        "sys/fs/cgroup/a.slice/b.service/memory.max",
                                        "sys/fs/cgroup/a.slice/b.service",
                                        "sys/fs/cgroup/a.slice/memory.max",
                                        "sys/fs/cgroup/a.slice",
                                        "sys/fs/cgroup/memory/m/n/memory.limit_in_bytes",
                                        "sys/fs/cgroup/memory/m/n",
                                        "sys/fs/cgroup/memory/m",
                                        "sys/fs/cgroup/memory/c/memory.limit_in_bytes",
                                        "sys/fs/cgroup/memory/c",
                                        "sys/fs/cgroup/memory/memory.limit_in_bytes",
                                        "sys/fs/cgroup/memory",
                                        "sys/fs/cgroup",
                                        "sys/fs",
                                        "sys",
                                        ""};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        remove_one(names[i]);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(none_without_groups),
        cmocka_unit_test(smallest_of_version_2),
        cmocka_unit_test(smallest_of_version_1),
        cmocka_unit_test(own_group_of_a_container),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
