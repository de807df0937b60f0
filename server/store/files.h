/* SPDX-License-Identifier: MIT */
/*
 * Files below a folder that is open as `at`; `key` is a path below it. Functions return 0, or -1
 * with errno. Thread-safe.
 */
#ifndef TL_STORE_FILES_H
#define TL_STORE_FILES_H

#include "base/buf.h"
#include "base/bytes.h"

/* Append up to `n` bytes to `out`, where there is room for them; fewer at the file's end. */
int tl_files_read_some(int fd, uint64_t offset, size_t n, struct tl_buf *out);
/* Limit `n` to what a file of `size` bytes has after `offset`, so that callers cannot cause a huge
 * allocation. */
size_t tl_files_limit_to_size(uint64_t size, uint64_t offset, size_t n);

/* Create the folders of `key`, each durable in its parent. */
int tl_files_make_parents(int at, const char *key);
/* Create the folder of `key`, which is not durable yet, in folders that are. */
int tl_files_make_folder_of(int at, const char *key);
/* Make the name `key` durable. */
int tl_files_sync_parent(int at, const char *key);
/* Make the names of `key` and its folder durable. */
int tl_files_sync_names(int at, const char *key);

#endif
