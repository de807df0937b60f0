/* SPDX-License-Identifier: MIT */
/* Tokens and their file, logins created from them, names in certificates. */
#include "net/auth.h"
#include "net/login.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static char *write_file(char path[static 32], const char *text)
{
    strcpy(path, "/tmp/tl-auth-XXXXXX");
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    return path;
}

static char *read_file(const char *path, char out[static 4096])
{
    FILE *const f = fopen(path, "re");
    assert_non_null(f);
    out[fread(out, 1, 4095, f)] = 0;
    fclose(f);
    return out;
}

static struct tl_auth *auth_of(const char *text)
{
    char path[32];
    struct tl_auth *auth = NULL;
    struct tl_fail fail = {0};
    write_file(path, text);
    if (tl_auth_read(&auth, path, &fail) < 0)
        fail_msg("%s", fail.text);
    unlink(path);
    return auth;
}

static unsigned roles_of(const struct tl_auth *auth, const char *authorization)
{
    const struct tl_grant grant = tl_auth_by_token(auth, authorization);
    tl_scope_put(grant.scope);
    assert_true(grant.roles || grant.why);
    return grant.roles;
}

static void test_tokens(void **state)
{
    struct tl_auth *const auth =
        auth_of("# who may what\n\nreading-0123456789 read\n"
                "  pushing-0123456789\tpush \r\nruling-01234567890 admin\n");
    assert_int_equal(roles_of(auth, "Bearer reading-0123456789"), TL_ROLE_READ);
    assert_int_equal(roles_of(auth, "bearer  pushing-0123456789"), TL_ROLE_READ | TL_ROLE_PUSH);
    assert_int_equal(roles_of(auth, "Bearer ruling-01234567890"), TL_ROLE_ALL);
    assert_int_equal(roles_of(auth, "Bearer reading-012345678"), 0);
    assert_int_equal(roles_of(auth, "Bearer "), 0);
    assert_int_equal(roles_of(auth, "Bearer"), 0);
    assert_int_equal(roles_of(auth, ""), 0);
    assert_int_equal(roles_of(auth, "Digest x"), 0);
    /* me:reading-0123456789 */
    assert_int_equal(roles_of(auth, "Basic bWU6cmVhZGluZy0wMTIzNDU2Nzg5"), TL_ROLE_READ);
    assert_int_equal(roles_of(auth, "Basic bWU6cmVhZGluZy0wMTIzNDU2Nzg"), 0);
    assert_int_equal(roles_of(auth, "Basic ===="), 0);
    assert_int_equal(roles_of(auth, "Basic !!!!"), 0);
    tl_auth_free(auth);
}

static void test_bad_files(void **state)
{
    static const char *const bad[] = {
        "",
        "one-word-only-here\n",
        "0123456789abcdef rule\n",
        "short read\n",
        "0123456789abcdef read twice\n",
        "0123456789abcdef push rig=\n",
        "0123456789abcdef push label=x\n",
        "0123456789abcdef push name=\n",
        "0123456789abcdef push expires=soon\n",
        "0123456789abcdef push expires=90d\n", /* from which date? */
        "0123456789abcdef push expires=2027-13-01\n",
        "sha256:0123 read\n",
        "cert: read\n",
        "0123456789abcdef read\n0123456789abcdef push\n",
        /* The same token again, by its digest. */
        "0123456789abcdef read\n"
        "sha256:9f9f5111f7b27a781f1f1ddde5ebc2dd2b796bfc7365c9c28b548e564176929f push\n",
    };
    char path[32];
    struct tl_auth *auth = NULL;
    struct tl_fail fail = {0};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_file(path, bad[i]);
        if (tl_auth_read(&auth, path, &fail) != TL_BAD)
            fail_msg("%s was taken", bad[i]);
        unlink(path);
    }
    assert_int_equal(tl_auth_read(&auth, "/nowhere/tokens", &fail), TL_IO);
}

static void test_open_files_are_refused(void **state)
{
    static const mode_t open_modes[] = {0644, 0604, 0602, 0666};
    char path[32];
    struct tl_auth *auth = NULL;
    struct tl_fail fail = {0};
    write_file(path, "reading-0123456789 read\n");
    for (size_t i = 0; i < sizeof open_modes / sizeof *open_modes; i++) {
        assert_int_equal(chmod(path, open_modes[i]), 0);
        assert_int_equal(tl_auth_read(&auth, path, &fail), TL_BAD);
        assert_non_null(strstr(fail.text, "everyone"));
    }
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(tl_auth_read(&auth, path, &fail), TL_OK);
    tl_auth_free(auth);
    unlink(path);
}

static void test_scopes(void **state)
{
    struct tl_auth *const auth =
        auth_of("pushing-0123456789 push rig=lab-*,bench label=team=a label=site=x\n"
                "reading-0123456789 read\n");
    struct tl_grant grant = tl_auth_by_token(auth, "Bearer reading-0123456789");
    assert_int_equal(grant.roles, TL_ROLE_READ);
    assert_null(grant.scope);
    assert_true(tl_scope_covers(NULL, "any", NULL));
    grant = tl_auth_by_token(auth, "Bearer pushing-0123456789");
    assert_int_equal(grant.roles, TL_ROLE_READ | TL_ROLE_PUSH);
    tl_auth_free(auth); /* the scope outlives it */
    struct tl_scope *const scope = grant.scope;
    assert_true(tl_scope_has_rig(scope, "lab-1") && tl_scope_has_rig(scope, "bench"));
    assert_false(tl_scope_has_rig(scope, "lab") || tl_scope_has_rig(scope, "bench2"));
    assert_string_equal(tl_scope_labels(scope), "team=a\nsite=x\n");
    assert_true(tl_scope_covers(scope, "lab-1", "k=v\nsite=x\nteam=a\n"));
    assert_false(tl_scope_covers(scope, "lab-1", "site=x\nteam=ab\n"));
    assert_false(tl_scope_covers(scope, "lab-1", NULL));
    assert_false(tl_scope_covers(scope, "other", "site=x\nteam=a\n"));
    char *const text = tl_scope_text(scope);
    assert_string_equal(text, "rig=lab-*,bench label=team=a label=site=x");
    free(text);
    tl_scope_put(scope);
}

static void test_digests_and_expiry(void **state)
{
    char text[512];
    char date[24];
    uint8_t digest[TL_TOKEN_DIGEST];
    assert_int_equal(tl_token_digest("hashed-0123456789", 17, digest), TL_OK);
    int n = snprintf(text, sizeof text, "sha256:");
    for (size_t i = 0; i < sizeof digest; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%02X", digest[i]);
    snprintf(text + n, sizeof text - (size_t)n,
             " push name=a expires=2999-01-01\nearly-0123456789 read expires=%s\n"
             "late-01234567890 read expires=%s\n",
             tl_token_expiry_text(time(NULL) - 1, date), "2999-12-31T23:59:59Z");
    struct tl_auth *const auth = auth_of(text);
    assert_int_equal(roles_of(auth, "Bearer hashed-0123456789"), TL_ROLE_READ | TL_ROLE_PUSH);
    assert_int_equal(roles_of(auth, "Bearer late-01234567890"), TL_ROLE_READ);
    assert_string_equal(tl_auth_by_token(auth, "Bearer early-0123456789").why,
                        "the token has expired");
    /* The contents of the file do not grant access. */
    text[7 + 2 * sizeof digest] = 0;
    char header[600];
    snprintf(header, sizeof header, "Bearer %s", text);
    assert_int_equal(roles_of(auth, header), 0);
    snprintf(header, sizeof header, "Bearer %s", text + 7);
    assert_int_equal(roles_of(auth, header), 0);
    tl_auth_free(auth);

    int64_t when;
    assert_int_equal(tl_token_expiry_parse("1970-01-02", &when), TL_OK);
    assert_int_equal(when, 86400);
    assert_int_equal(tl_token_expiry_parse("2024-02-29T12:00:01Z", &when), TL_OK);
    assert_int_equal(when, 1709208001);
    assert_string_equal(tl_token_expiry_text(when, date), "2024-02-29T12:00:01Z");
    assert_int_equal(tl_token_expiry_parse("2d", &when), TL_OK);
    assert_true(llabs((long long)when - (long long)time(NULL) - 2 * 86400) <= 2);
    static const char *const no_dates[] = {"",           "soon", "2024-02", "2024-02-29x",
                                           "2024-00-01", "5G"};
    for (size_t i = 0; i < sizeof no_dates / sizeof *no_dates; i++)
        assert_int_equal(tl_token_expiry_parse(no_dates[i], &when), TL_USAGE);
}

static void test_certificates(void **state)
{
    static const char names[] = "other.lab\0rig7.lab\0";
    struct tl_auth *const auth = auth_of("cert:rig7.lab push rig=rig7\ncert:boss admin\n");
    struct tl_grant grant =
        tl_auth_by_names(auth, (struct tl_bytes){(const uint8_t *)names, sizeof names - 1});
    assert_int_equal(grant.roles, TL_ROLE_READ | TL_ROLE_PUSH);
    assert_true(tl_scope_has_rig(grant.scope, "rig7") && !tl_scope_has_rig(grant.scope, "rig8"));
    tl_scope_put(grant.scope);
    grant = tl_auth_by_names(auth, (struct tl_bytes){(const uint8_t *)names, 10});
    assert_int_equal(grant.roles, 0);
    assert_non_null(grant.why);
    /* A certificate name is not a token, however it is written. */
    assert_int_equal(roles_of(auth, "Bearer cert:rig7.lab"), 0);
    assert_int_equal(roles_of(auth, "Bearer rig7.lab"), 0);
    tl_auth_free(auth);
}

/* ---- logins --------------------------------------------------------------------------------- */

/* The cookie of a Set-Cookie value as a browser sends it back. */
static void send_back(const struct tl_fields *set, struct tl_fields *headers)
{
    const char *const value = tl_fields_get(set, "set-cookie");
    assert_non_null(value);
    assert_int_equal(tl_fields_add(headers, "cookie", "other=1; x"), TL_OK);
    assert_int_equal(tl_fields_add_n(headers, "cookie", 6, value, strcspn(value, ";")), TL_OK);
}

static void test_logins(void **state)
{
    struct tl_logins logins, others;
    struct tl_fields set = {0}, headers = {0}, changed = {0};
    struct tl_fail fail = {0};
    static const uint8_t digest[TL_TOKEN_DIGEST] = {1, 2, 3};
    uint8_t found[TL_TOKEN_DIGEST];
    const struct tl_grant grant = {.roles = TL_ROLE_READ, .digest = {1, 2, 3}};
    assert_int_equal(tl_logins_init(&logins, &fail), TL_OK);
    assert_int_equal(tl_logins_init(&others, &fail), TL_OK);
    assert_int_equal(tl_login_cookie(&logins, &grant, true, &set), TL_OK);
    const char *const value = tl_fields_get(&set, "set-cookie");
    assert_non_null(strstr(value, "; HttpOnly"));
    assert_non_null(strstr(value, "; SameSite=Lax"));
    assert_non_null(strstr(value, "; Secure"));
    send_back(&set, &headers);
    assert_true(tl_login_find(&logins, &headers, found));
    assert_memory_equal(found, digest, sizeof digest);
    assert_false(tl_login_find(&others, &headers, found));
    strcpy(others.name, logins.name); /* the same name, but another key */
    assert_false(tl_login_find(&others, &headers, found));
    /* Changing any single character invalidates it. */
    char cookie[512];
    snprintf(cookie, sizeof cookie, "%s", tl_fields_value(&headers, 1));
    for (size_t i = strlen(logins.name) + 1; cookie[i]; i++) {
        const char was = cookie[i];
        cookie[i] = was == '1' ? '2' : '1';
        assert_int_equal(tl_fields_add(&changed, "cookie", cookie), TL_OK);
        assert_false(tl_login_find(&logins, &changed, found));
        tl_fields_fini(&changed);
        cookie[i] = was;
    }
    tl_fields_fini(&set);
    tl_fields_fini(&headers);
    /* An expired one, and the one set by a logout. */
    const struct tl_grant over = {.roles = 1, .digest = {1, 2, 3}, .expires = time(NULL) - 1};
    assert_int_equal(tl_login_cookie(&logins, &over, false, &set), TL_OK);
    assert_null(strstr(tl_fields_get(&set, "set-cookie"), "Secure"));
    send_back(&set, &headers);
    assert_false(tl_login_find(&logins, &headers, found));
    tl_fields_fini(&set);
    tl_fields_fini(&headers);
    assert_int_equal(tl_login_cookie(&logins, NULL, false, &set), TL_OK);
    assert_non_null(strstr(tl_fields_get(&set, "set-cookie"), "Max-Age=0"));
    send_back(&set, &headers);
    assert_false(tl_login_find(&logins, &headers, found));
    tl_fields_fini(&set);
    tl_fields_fini(&headers);
}

/* ---- the file ------------------------------------------------------------------------------- */

static void test_file_is_changed_line_by_line(void **state)
{
    char path[32];
    char text[4096];
    struct stat st;
    struct tl_fail fail = {0};
    write_file(path, "# the lab\nold-0123456789abc read name=old\nbroken line\n# end");
    chmod(path, 0660);
    /* Nothing is added to a file that cannot be parsed. */
    assert_int_equal(tl_tokens_add(path, "new-0123456789abc push name=new", &fail), TL_BAD);
    /* A line can be removed; comments and all other lines stay. */
    assert_int_equal(tl_tokens_remove(path, "old", &fail), TL_OK);
    assert_string_equal(read_file(path, text), "# the lab\nbroken line\n# end");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0660);
    unlink(path);
    /* A new file, readable by its owner only. */
    assert_int_equal(tl_tokens_remove(path, "old", &fail), TL_IO);
    assert_int_equal(tl_tokens_add(path, "new-0123456789abc push name=new rig=a", &fail), TL_OK);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(tl_tokens_add(path, "one-0123456789abc read name=new", &fail), TL_EXISTS);
    assert_int_equal(tl_tokens_add(path, "new-0123456789abc read", &fail), TL_EXISTS);
    assert_int_equal(tl_tokens_add(path, "cert:rig7 push", &fail), TL_OK);
    assert_int_equal(tl_tokens_remove(path, "nobody", &fail), TL_NOTFOUND);
    assert_int_equal(tl_tokens_remove(path, "rig7", &fail), TL_OK);
    assert_string_equal(read_file(path, text), "new-0123456789abc push name=new rig=a\n");
    struct tl_token *tokens;
    size_t n;
    char id[TL_TOKEN_ID + 1];
    assert_int_equal(tl_tokens_read(&tokens, &n, path, &fail), TL_OK);
    assert_int_equal(n, 1);
    tl_token_id(&tokens[0], id);
    tl_tokens_free(tokens, n);
    assert_int_equal(tl_tokens_remove(path, id, &fail), TL_OK);
    assert_string_equal(read_file(path, text), "");
    unlink(path);
}

/* Concurrent additions: nothing is lost. */
static void test_file_is_locked(void **state)
{
    enum { PROCESSES = 4, EACH = 8 };
    char path[32];
    struct tl_fail fail = {0};
    write_file(path, "");
    pid_t children[PROCESSES];
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            int rc = TL_OK;
            for (int k = 0; k < EACH && rc == TL_OK; k++) {
                char line[64];
                snprintf(line, sizeof line, "token-%05d-%05d read", i, k);
                rc = tl_tokens_add(path, line, &fail);
            }
            _exit(rc == TL_OK ? 0 : 1);
        }
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        waitpid(children[i], &status, 0);
        assert_int_equal(status, 0);
    }
    struct tl_token *tokens;
    size_t n;
    assert_int_equal(tl_tokens_read(&tokens, &n, path, &fail), TL_OK);
    assert_int_equal(n, PROCESSES * EACH);
    tl_tokens_free(tokens, n);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_open_files_are_refused),
        cmocka_unit_test(test_scopes),
        cmocka_unit_test(test_digests_and_expiry),
        cmocka_unit_test(test_certificates),
        cmocka_unit_test(test_logins),
        cmocka_unit_test(test_file_is_changed_line_by_line),
        cmocka_unit_test(test_file_is_locked),
    };
    return cmocka_run_group_tests_name("auth", tests, NULL, NULL);
}
