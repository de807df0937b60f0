/* SPDX-License-Identifier: MIT */
/*
 * A server of one's own for `view`: another process of this program, on a free port, with a data
 * folder that is removed afterwards or kept. Not thread-safe; errors are reported.
 */
#ifndef TL_CLI_VIEWSERVER_H
#define TL_CLI_VIEWSERVER_H

#include <stdbool.h>
#include <sys/types.h>

struct tl_view_server {
    char dir[4096]; /* the data folder */
    bool kept;
    int lock;     /* the folder, locked while it is in use; -1: none */
    pid_t pid;    /* 0: not running */
    char url[96]; /* "http://127.0.0.1:40123" */
};

/*
 * Start it and wait until it accepts calls. `keep` is the data folder; NULL: one in the user's
 * cache, of which those that earlier runs left behind are removed. `listen` is "ADDR:PORT". The
 * server ends with this process. TL_ARGS_GO, or the exit status.
 */
int tl_view_server_start(struct tl_view_server *out, const char *keep, const char *listen);
/* End it and remove its folder, unless that is kept. `running` false: it ended by itself. */
void tl_view_server_stop(struct tl_view_server *server, bool running);

#endif
