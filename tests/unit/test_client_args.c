/* SPDX-License-Identifier: MIT */
/*
 * Command lines by their table: every notation of a value, words in any order, and names that are
 * not whole, which must be refused whatever options there are today.
 */
#include "terminal/args.h"

#include "terminal/say.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct {
    const char *text, *out;
    uint64_t number;
    bool flag, quiet;
    struct tl_arg_range range;
    unsigned helped;
} got;

static const struct tl_option options[] = {
    {"text", 0, TL_ARG_TEXT, &got.text, "WORD", "a word"},
    {.help = "more:"},
    {"texture", 0, TL_ARG_TEXT, &got.text, "WORD", "another"},
    {"number", 'n', TL_ARG_U64, &got.number, "N", "a number"},
    {"flag", 0, TL_ARG_FLAG, &got.flag, NULL, "a flag"},
    {"quiet", 'q', TL_ARG_FLAG, &got.quiet, NULL, "no words"},
    {"range", 0, TL_ARG_RANGE, &got.range, "A:B", NULL},
    TL_OUTPUT_ARGS(got.out, "FILE", "where to"),
    {0},
};

static void note_help(const char *command, const struct tl_option *table)
{
    assert_string_equal(command, "try");
    assert_ptr_equal(table, options);
    got.helped++;
}

/* Parse words separated by blanks. `rest` receives the positional ones, joined by blanks; `said`
 * what was printed as an error. */
static int parse(const char *line, char rest[static 64], char said[static 512])
{
    static char text[256];
    static char *argv[32];
    int argc = 0, first = 0;
    memset(&got, 0, sizeof got);
    snprintf(text, sizeof text, "try %s", line);
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    FILE *const file = tmpfile();
    const int before = dup(STDERR_FILENO);
    assert_non_null(file);
    fflush(stderr);
    assert_true(dup2(fileno(file), STDERR_FILENO) >= 0);
    const int status = tl_args_parse(argc, argv, options, &first);
    fflush(stderr);
    assert_true(dup2(before, STDERR_FILENO) >= 0);
    close(before);
    rewind(file);
    said[fread(said, 1, 511, file)] = 0;
    fclose(file);
    *rest = 0;
    for (int i = first; status == TL_ARGS_GO && i < argc; i++)
        snprintf(rest + strlen(rest), 64 - strlen(rest), "%s%s", *rest ? " " : "", argv[i]);
    return status;
}

static void notations(void **state)
{
    char rest[64], said[512];
    (void)state;
    assert_int_equal(parse("--text a --number=0x10 --flag", rest, said), TL_ARGS_GO);
    assert_true(!strcmp(got.text, "a") && got.number == 16 && got.flag && !got.quiet);
    assert_int_equal(parse("-n 7 -o x", rest, said), TL_ARGS_GO);
    assert_true(got.number == 7 && !strcmp(got.out, "x"));
    assert_int_equal(parse("-qn7 -ox", rest, said), TL_ARGS_GO);
    assert_true(got.quiet && got.number == 7 && !strcmp(got.out, "x"));
    assert_int_equal(parse("-qo x", rest, said), TL_ARGS_GO);
    assert_true(got.quiet && !strcmp(got.out, "x"));
    assert_int_equal(parse("--out x", rest, said), TL_ARGS_GO);
    assert_string_equal(got.out, "x");
    assert_int_equal(parse("--text= --range 3:", rest, said), TL_ARGS_GO);
    assert_true(!*got.text && got.range.given && got.range.from == 3);
    /* Values may look like options. */
    assert_int_equal(parse("--text --flag", rest, said), TL_ARGS_GO);
    assert_true(!strcmp(got.text, "--flag") && !got.flag);
    assert_int_equal(parse("--text=a=b", rest, said), TL_ARGS_GO);
    assert_string_equal(got.text, "a=b");
}

static void order(void **state)
{
    char rest[64], said[512];
    (void)state;
    assert_int_equal(parse("a --text b c -n 1 - d", rest, said), TL_ARGS_GO);
    assert_string_equal(rest, "a c - d");
    assert_string_equal(got.text, "b");
    assert_int_equal(parse("a -- --text b -n", rest, said), TL_ARGS_GO);
    assert_string_equal(rest, "a --text b -n");
    assert_null(got.text);
    assert_int_equal(parse("", rest, said), TL_ARGS_GO);
    assert_string_equal(rest, "");
}

static void mistakes(void **state)
{
    static const struct {
        const char *line, *says;
    } cases[] = {
        {"--tex a",
         "unknown option --tex: options are not abbreviated; there is --text, --texture"},
        {"--nu 5", "--nu: options are not abbreviated; there is --number"},
        {"--textu=5", "--textu: options are not abbreviated; there is --texture"},
        {"--outp x", "there is --output"},
        {"--ran 1:2", "unknown option --ran;"}, /* not shown, thus not offered */
        {"--Text a", "unknown option --Text;"},
        {"--texts a", "unknown option --texts;"},
        {"--txet a", "unknown option --txet; there is --text"},
        {"--nubmer=5", "unknown option --nubmer; there is --number"},
        {"--colour a", "unknown option --colour;"},
        {"--=5", "unknown option --;"},
        {"-x", "unknown option -x"},
        {"-qx", "unknown option -x"},
        {"--text", "--text needs a value"},
        {"-qn", "-n needs a value"},
        {"--flag=yes", "--flag takes no value"},
        {"--number five", "--number five: must be a number"},
        {"-n -1", "--number -1: must be a number"},
        {"a --hel", "unknown option --hel"},
    };
    char rest[64], said[512];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(parse(cases[i].line, rest, said), TL_CLI_USAGE);
        if (!strstr(said, cases[i].says))
            fail_msg("%s: %s", cases[i].line, said);
    }
}

static void help(void **state)
{
    static const char *const lines[] = {"--help", "a -h", "-qh", "--flag --help --nonsense"};
    char rest[64], said[512];
    (void)state;
    tl_args_on_help(note_help);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        assert_int_equal(parse(lines[i], rest, said), TL_CLI_DONE);
        assert_int_equal(got.helped, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(notations),
        cmocka_unit_test(order),
        cmocka_unit_test(mistakes),
        cmocka_unit_test(help),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
