/* SPDX-License-Identifier: MIT */
/*
 * The kernel tells the address that could not be read, and its list of mappings which file that is.
 * Nothing could go on: the bytes are gone, and zeros in their place would be instructions.
 */
#include "out/cutfile.h"

#include "out/outfile.h"
#include "terminal/say.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE 5000 /* bytes: a path of the maximal length, and what is in front of it */

/* Only what may be called in a signal handler: neither streams nor memory. */

static void say(const char *text)
{
    (void)!write(STDERR_FILENO, text, strlen(text));
}

static uint64_t read_hex(const char **p)
{
    uint64_t value = 0;
    for (; (**p >= '0' && **p <= '9') || (**p >= 'a' && **p <= 'f'); ++*p)
        value = value << 4 | (unsigned)(**p <= '9' ? **p - '0' : **p - 'a' + 10);
    return value;
}

/* "7f0123400000-7f0123401000 r--p 00000000 08:01 1234   /path": does it have the address? */
static bool is_at(const char *line, uint64_t address)
{
    const uint64_t from = read_hex(&line);
    line += *line == '-';
    return address >= from && address < read_hex(&line);
}

/* Path of the file that is mapped at an address; NULL: none. Valid until the next call. */
static const char *file_at(uint64_t address)
{
    static char text[LINE];
    size_t have = 0;
    const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    for (ssize_t n = 1; fd >= 0 && n > 0 && have < LINE - 1; have += (size_t)(n > 0 ? n : 0)) {
        char *end;
        text[have] = 0;
        while ((end = strchr(text, '\n'))) {
            *end = 0;
            const char *const path = strchr(text, '/');
            if (path && is_at(text, address)) {
                close(fd);
                return path;
            }
            have -= (size_t)(end + 1 - text);
            memmove(text, end + 1, have + 1);
        }
        n = read(fd, text + have, LINE - 1 - have);
    }
    if (fd >= 0)
        close(fd);
    return NULL;
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
    static atomic_flag taken = ATOMIC_FLAG_INIT;
    (void)context;
    if (atomic_flag_test_and_set(&taken))
        for (;;)
            pause(); /* another thread is about to end the process */
    const char *const path =
        info->si_code == BUS_ADRERR ? file_at((uint64_t)(uintptr_t)info->si_addr) : NULL;
    if (!path) {
        signal(number, SIG_DFL);
        raise(number);
        return;
    }
    tl_outfile_remove_all();
    say("tracelake: ");
    say(path);
    say(": became shorter while it was read; run this again, and leave the file as it is "
        "meanwhile\n");
    _exit(TL_CLI_BAD);
}

void tl_cutfile_guard(void)
{
    struct sigaction action = {.sa_flags = SA_SIGINFO};
    action.sa_sigaction = on_bus_error;
    sigaction(SIGBUS, &action, NULL);
}
