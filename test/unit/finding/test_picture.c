/* test_picture.c: the sentences in README's picture are those that Foliot makes today. usage: test_picture docs/demo.svg */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bug.h"
#include "core/finding/finding.h"

static char picture[1 << 20];

/* The picture's text: without tags, with single spaces, &gt; as >. */
static void read_text(const char *path)
{
    static char svg[1 << 20];
    FILE *file = fopen(path, "re");
    size_t used = 0;
    bool tag = false;

    assert_non_null(file);
    const size_t size = fread(svg, 1, sizeof(svg) - 1, file);
    fclose(file);
    assert_in_range(size, 1000, sizeof(svg) - 2);
    for (const char *at = svg; *at != '\0'; at++) {
        char c = *at == '\n' ? ' ' : *at;
        if (c == '<' || c == '>') {
            tag = c == '<';
            c = ' ';
        } else if (strncmp(at, "&gt;", 4) == 0) {
            c = '>';
            at += 3;
        }
        if (!tag && (c != ' ' || (used > 0 && picture[used - 1] != ' '))) {
            picture[used++] = c;
        }
    }
    picture[used] = '\0';
}

static void known_advice(const char *text)
{
    for (uint32_t i = 1; i < 64; i++) {
        const char *advice = finding_advice_text(i);
        if (advice[0] != '\0' && strncmp(text, advice, strlen(advice)) == 0) {
            return;
        }
    }
    fail_msg("no advice begins so: %.60s", text);
}

/* "silent black hole (6 probes proven lost), 13 paths …": a finding of some kind with these numbers gives the same words. */
static void known_what(const char *text, size_t size)
{
    char found[512], made[512];
    struct finding f;
    int64_t numbers[4] = {0};
    unsigned count = 0;

    snprintf(found, sizeof(found), "%.*s", (int)size, text);
    for (char *at = found; *at != '\0' && count < ARRAY_COUNT(numbers); at++) {
        if (*at >= '0' && *at <= '9') {
            numbers[count++] = strtoll(at, &at, 10);
            at--;
        }
    }
    for (uint32_t kind = 1; kind < FINDING_KIND_COUNT; kind++) {
        finding_init(&f, (enum finding_kind)kind, (struct mono){0});
        memcpy(f.numbers, numbers, sizeof(numbers));
        finding_what_text(&f, made, sizeof(made));
        if (strcmp(made, found) == 0) {
            return;
        }
    }
    fail_msg("no finding is told so: %s", found);
}

static void its_sentences_are_todays(void **state)
{
    int sentences = 0;

    for (const char *at = picture; (at = strstr(at, "named after ")) != NULL; sentences++) {
        at = strstr(at, " ms:");
        assert_non_null(at);
        const char *end = strstr(at, " [alert after ");
        const char *since = strstr(at, ", since"), *what = strstr(at + 4, ": ");
        assert_true(what != NULL && since != NULL && end != NULL && what < since && since < end);
        known_what(what + 2, (size_t)(since - what) - 2);
        const char *advice = strstr(since, "; suspect: ");
        assert_true(advice != NULL && (advice = strstr(advice + 1, "; ")) != NULL && advice < end);
        known_advice(advice + 2);
    }
    assert_int_equal(sentences, 2);
}

int main(int argc, char *argv[])
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(its_sentences_are_todays)};

    if (argc != 2) {
        fprintf(stderr, "usage: test_picture FILE.svg\n");
        return 2;
    }
    read_text(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
