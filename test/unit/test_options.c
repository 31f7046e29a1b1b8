/* test_options.c: command lines and their table: which are read, which are refused with which error, and the help. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/bug.h"
#include "base/options.h"
#include "base/prng.h"

static struct {
    bool all, quiet;
    const char *file;
    double seconds;
    int count, times;
    size_t size;
    unsigned pattern;
    int port;
} got;

static bool take_port(const char *text, void *to)
{
    return sscanf(text != NULL ? text : "7639", "%d", (int *)to) == 1;
}

static const char *const patterns[] = {"cross", "fill", NULL};
static const struct option_entry entries[] = {
    {"all", 'a', OPTION_FLAG, &got.all, .help = "everything"},
    {"quiet", 'q', OPTION_FLAG, &got.quiet, .help = "nothing"},
    {"file", 'f', OPTION_TEXT, &got.file, .value = "FILE", .help = "from there"},
    {"seconds", 0, OPTION_NUMBER, &got.seconds, 0.1, 3600, .value = "S", .help = "so long"},
    {"count", 'n', OPTION_INT, &got.count, 1, 64, .value = "N", .help = "so many"},
    {NULL, 't', OPTION_COUNT, &got.times, 0, 1e6, .value = "N", .help = "as often"},
    {"size", 0, OPTION_SIZE, &got.size, 0, 1e12, .value = "BYTES", .help = "so large"},
    {.kind = OPTION_HEADING, .help = "Where:"},
    {"pattern", 0, OPTION_CHOICE, &got.pattern, .choices = patterns, .value = "P", .help = "…"},
    {"port", 0, OPTION_OWN, &got.port, .take = take_port, .optional = true, .value = "PORT",
     .expected = "a port", .help = "there"},
    {"portrait", 0, OPTION_FLAG, &got.quiet},
    {"help", 'h', OPTION_HELP, .help = "this text"},
    {"version", 'V', OPTION_VERSION, .help = "version"},
};
static struct option_set set;
static struct option_outcome outcome;
static char *words[16];
static int word_count;

/* "prog A B…", split as by a shell. */
static enum option_verdict read_line(const char *line)
{
    static char text[512];

    memset(&got, 0, sizeof(got));
    snprintf(text, sizeof(text), "prog %s", line);
    word_count = 0;
    for (char *at = text, *word; (word = strsep(&at, " ")) != NULL;) {
        words[word_count++] = word;
    }
    options_read(&set, word_count, words, &outcome);
    return outcome.verdict;
}

static void refused(const char *line, const char *why)
{
    assert_int_equal(read_line(line), OPTIONS_WRONG);
    assert_string_equal(outcome.text, why);
}

static int begin(void **state)
{
    set = (struct option_set){.program = "prog",
                              .usage = "usage: prog\n\n",
                              .after = "end\n",
                              .entries = entries,
                              .count = ARRAY_COUNT(entries),
                              .words_most = 3,
                              .words = "at most three files"};
    return 0;
}

static void each_kind_of_value_is_read(void **state)
{
    assert_int_equal(read_line("--all --file x --seconds 0.5 --count 64 -t 2K --size 1.5M "
                               "--pattern fill --port=80"),
                     OPTIONS_GOOD);
    assert_true(got.all);
    assert_string_equal(got.file, "x");
    assert_true(got.seconds > 0.49 && got.seconds < 0.51);
    assert_int_equal(got.count, 64);
    assert_int_equal(got.times, 2048);
    assert_int_equal(got.size, 1572864);
    assert_int_equal(got.pattern, 1);
    assert_int_equal(got.port, 80);
    assert_int_equal(read_line("--port"), OPTIONS_GOOD);
    assert_int_equal(got.port, 7639);
    assert_int_equal(read_line("--size 8gB --file= -n 1"), OPTIONS_GOOD);
    assert_int_equal(got.size, 8LL << 30);
    assert_string_equal(got.file, "");
    assert_int_equal(got.count, 1);
    assert_int_equal(read_line("-V"), OPTIONS_VERSION);
}

static void every_way_to_write_an_option(void **state)
{
    static const char *const ways[] = {"-fx -n7 -aq", "-aqf x -n 7", "--fi x --c=7 --a --q",
                                       "--file=x --count 7 -qa", "-aqn7 -fx"};
    for (size_t i = 0; i < ARRAY_COUNT(ways); i++) {
        assert_int_equal(read_line(ways[i]), OPTIONS_GOOD);
        assert_string_equal(got.file, "x");
        assert_int_equal(got.count, 7);
        assert_true(got.all && got.quiet);
        assert_int_equal(outcome.first, word_count);
    }
}

static void an_error_has_what_was_expected(void **state)
{
    refused("--seconds 0", "prog: --seconds: expected a number from 0.1 to 3600, found '0'\n");
    refused("--seconds 3601",
            "prog: --seconds: expected a number from 0.1 to 3600, found '3601'\n");
    refused("--seconds nan", "prog: --seconds: expected a number from 0.1 to 3600, found 'nan'\n");
    refused("--seconds=", "prog: --seconds: expected a number from 0.1 to 3600, found ''\n");
    refused("-n 1K", "prog: --count: expected a whole number from 1 to 64, found '1K'\n");
    refused("-n 1.5", "prog: --count: expected a whole number from 1 to 64, found '1.5'\n");
    refused("-n 65", "prog: --count: expected a whole number from 1 to 64, found '65'\n");
    refused("-n", "prog: --count: expected a whole number from 1 to 64, found nothing\n");
    refused("-t x", "prog: -t: expected a whole number from 0 to 1000000, found 'x'\n");
    refused("--size -1", "prog: --size: expected a number of bytes such as 64K from 0 to "
                         "1000000000000, found '-1'\n");
    refused("--size 1KK", "prog: --size: expected a number of bytes such as 64K from 0 to "
                          "1000000000000, found '1KK'\n");
    refused("--pattern leaf", "prog: --pattern: expected one of cross, fill, found 'leaf'\n");
    refused("--port=x", "prog: --port: expected a port, found 'x'\n");
    refused("--all=1", "prog: --all: expected no value, found '1'\n");
    refused("--nothing", "prog: no option '--nothing'; --help lists them\n");
    refused("-ax", "prog: no option '-x'; --help lists them\n");
    refused("--po", "prog: several options begin with '--po'; --help lists them\n");
    refused("a b c d", "prog: expected at most three files, found 'd'\n");
    assert_int_equal(read_line("--port=7"), OPTIONS_GOOD); /* whole, though --portrait begins so */
    set.words_least = 2;
    refused("-a", "prog: expected at most three files, found nothing\n");
    refused("a", "prog: expected at most three files, found less\n");
    set.words_least = set.words_most = 0;
    set.words = NULL;
    refused("a", "prog: expected options only, found 'a'\n");
}

/* Options and words in any order: the words come last, in their own order. */
static void words_stay_in_order_wherever_options_are(void **state)
{
    struct prng prng;
    prng_init(&prng, 1);
    for (int round = 0; round < 2000; round++) {
        static const char *const options[] = {"-a", "-n 7", "--file x", "--count=7"};
        char line[256] = "", wanted[64] = "", found[64] = "";
        size_t used = 0;
        int count = 0;
        for (int k = 0; k < 6; k++) {
            const bool word = prng_below(&prng, 2) == 0;
            if (word) {
                used += (size_t)snprintf(line + used, sizeof(line) - used, "%sw%d",
                                         used > 0 ? " " : "", k);
                snprintf(wanted + strlen(wanted), sizeof(wanted) - strlen(wanted), "w%d ", k);
                count++;
            } else {
                used +=
                    (size_t)snprintf(line + used, sizeof(line) - used, "%s%s", used > 0 ? " " : "",
                                     options[prng_below(&prng, ARRAY_COUNT(options))]);
            }
        }
        set.words_most = 6;
        assert_int_equal(read_line(line), OPTIONS_GOOD);
        assert_int_equal(word_count - outcome.first, count);
        for (int i = outcome.first; i < word_count; i++) {
            snprintf(found + strlen(found), sizeof(found) - strlen(found), "%s ", words[i]);
        }
        assert_string_equal(found, wanted);
    }
}

static void two_dashes_or_the_first_word_end_the_options(void **state)
{
    assert_int_equal(read_line("a -q -- -a b"), OPTIONS_GOOD);
    assert_true(got.quiet && !got.all);
    assert_int_equal(outcome.first, 3);
    assert_string_equal(words[3], "a");
    assert_string_equal(words[4], "-a");
    set.first_word_ends = true;
    set.words_most = 0;
    assert_int_equal(read_line("-q run -a --nothing - x y z"), OPTIONS_GOOD);
    assert_true(got.quiet && !got.all);
    assert_int_equal(outcome.first, 2);
    assert_string_equal(words[2], "run");
}

static void the_help_is_of_the_table(void **state)
{
    assert_int_equal(read_line("-ah --nothing"), OPTIONS_HELP);
    assert_string_equal(outcome.text, "usage: prog\n\n"
                                      "  -a, --all          everything\n"
                                      "  -q, --quiet        nothing\n"
                                      "  -f, --file FILE    from there\n"
                                      "      --seconds S    so long\n"
                                      "  -n, --count N      so many\n"
                                      "  -t N               as often\n"
                                      "      --size BYTES   so large\n"
                                      "\nWhere:\n"
                                      "      --pattern P    …\n"
                                      "      --port[=PORT]  there\n"
                                      "  -h, --help         this text\n"
                                      "  -V, --version      version\n"
                                      "end\n");
}

static void long_help_is_broken_at_words(void **state)
{
    static const struct option_entry long_ones[] = {
        {"a-name-longer-than-the-column-may-be", 0, OPTION_FLAG, &got.all, .help = "short"},
        {"help", 'h', OPTION_HELP,
         .help = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
                 "fifteen"},
    };
    set.entries = long_ones;
    set.count = ARRAY_COUNT(long_ones);
    set.usage = set.after = NULL;
    assert_int_equal(read_line("--help"), OPTIONS_HELP);
    assert_string_equal(outcome.text,
                        "      --a-name-longer-than-the-column-may-be\n"
                        "              short\n"
                        "  -h, --help  one two three four five six seven eight nine ten eleven "
                        "twelve thirteen fourteen\n"
                        "              fifteen\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(each_kind_of_value_is_read, begin),
        cmocka_unit_test_setup(every_way_to_write_an_option, begin),
        cmocka_unit_test_setup(an_error_has_what_was_expected, begin),
        cmocka_unit_test_setup(words_stay_in_order_wherever_options_are, begin),
        cmocka_unit_test_setup(two_dashes_or_the_first_word_end_the_options, begin),
        cmocka_unit_test_setup(the_help_is_of_the_table, begin),
        cmocka_unit_test_setup(long_help_is_broken_at_words, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
