/* options.c: a command line by a table: reading, errors, help. */
#include "base/options.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "base/strbuf.h"

#define HELP_COLUMNS  96
#define HELP_LEFT_MAX 28 /* the largest column at which explanations begin */

bool option_has_value(const struct option_entry *entry)
{
    return entry->kind >= OPTION_TEXT && !entry->optional;
}

/* ---- values ---- */

static void add_range(struct strbuf *s, const char *what, const struct option_entry *e)
{
    strbuf_add(s, "%s", what);
    if (e->least < e->most) {
        strbuf_add(s, " from %.15g to %.15g", e->least, e->most);
    }
}

static void add_expected(struct strbuf *s, const struct option_entry *e)
{
    if (e->expected != NULL) {
        strbuf_add(s, "%s", e->expected);
        return;
    }
    switch (e->kind) {
    case OPTION_NUMBER:
        add_range(s, "a number", e);
        break;
    case OPTION_INT:
    case OPTION_COUNT:
        add_range(s, "a whole number", e);
        break;
    case OPTION_SIZE:
        add_range(s, "a number of bytes such as 64K", e);
        break;
    case OPTION_CHOICE:
        strbuf_add(s, "%s", e->choices[1] != NULL ? "one of " : "");
        for (size_t i = 0; e->choices[i] != NULL; i++) {
            strbuf_add(s, "%s%s", i > 0 ? ", " : "", e->choices[i]);
        }
        break;
    default:
        strbuf_add(s, "%s", e->value != NULL ? e->value : "a value");
        break;
    }
}

static bool in_range(const struct option_entry *e, double value)
{
    return e->least >= e->most ? value == value : value >= e->least && value <= e->most;
}

/* "1.5M": 1,572,864, if units are allowed. */
static bool read_number(const struct option_entry *e, const char *text, double *ret)
{
    static const char units[] = "KMG";
    const bool scaled = e->kind == OPTION_COUNT || e->kind == OPTION_SIZE;
    char *end;
    double value = strtod(text, &end);
    const char *unit = scaled && *end != '\0' ? strchr(units, *end & ~0x20) : NULL;

    if (end == text) {
        return false;
    }
    if (unit != NULL && *unit != '\0') {
        for (long i = 0; i <= unit - units; i++) {
            value *= 1024;
        }
        end++;
        end += *end == 'B' || *end == 'b';
    }
    *ret = value;
    return *end == '\0' && in_range(e, value);
}

static bool read_whole(const struct option_entry *e, const char *text)
{
    double value;
    if (!read_number(e, text, &value) || !(value >= INT32_MIN && value <= INT32_MAX) ||
        value != (int)value) {
        return false;
    }
    *(int *)e->to = (int)value;
    return true;
}

static bool read_choice(const struct option_entry *e, const char *text)
{
    for (unsigned i = 0; e->choices[i] != NULL; i++) {
        if (strcmp(e->choices[i], text) == 0) {
            *(unsigned *)e->to = i;
            return true;
        }
    }
    return false;
}

static bool take(const struct option_entry *e, const char *text)
{
    double value;
    switch (e->kind) {
    case OPTION_FLAG:
        *(bool *)e->to = true;
        return true;
    case OPTION_TEXT:
        *(const char **)e->to = text;
        return true;
    case OPTION_NUMBER:
        return read_number(e, text, e->to);
    case OPTION_INT:
    case OPTION_COUNT:
        return read_whole(e, text);
    case OPTION_SIZE:
        ASSERT(e->least >= 0 && e->least < e->most);
        if (!read_number(e, text, &value)) {
            return false;
        }
        *(size_t *)e->to = (size_t)value;
        return true;
    case OPTION_CHOICE:
        return read_choice(e, text);
    case OPTION_OWN:
        return e->take(text, e->to);
    case OPTION_HEADING:
    case OPTION_HELP:
    case OPTION_VERSION:
        break;
    }
    ASSERT(false); /* these kinds never get here */
    return false;
}

/* ---- the help ---- */

/* The width in characters of UTF-8. */
static int width(const char *text)
{
    int count = 0;
    for (; *text != '\0'; text++) {
        count += (*text & 0xc0) != 0x80;
    }
    return count;
}

/* "  -c, --config FILE" */
static void left_column(const struct option_entry *e, char *text, size_t size)
{
    struct strbuf s = strbuf_init(text, size);
    if (e->letter != '\0') {
        strbuf_add(&s, "  -%c%s", e->letter, e->name != NULL ? ", " : "");
    } else {
        strbuf_add(&s, "      ");
    }
    if (e->name != NULL) {
        strbuf_add(&s, "--%s", e->name);
    }
    if (e->optional) {
        strbuf_add(&s, "[=%s]", e->value);
    } else if (option_has_value(e)) {
        strbuf_add(&s, " %s", e->value != NULL ? e->value : "VALUE");
    }
}

static int begin_of_right(const struct option_set *set)
{
    char left[128];
    int most = 0;
    for (size_t i = 0; i < set->count; i++) {
        if (set->entries[i].kind != OPTION_HEADING && set->entries[i].help != NULL) {
            left_column(&set->entries[i], left, sizeof(left));
            const int columns = width(left) + 2;
            most = columns > most && columns <= HELP_LEFT_MAX ? columns : most;
        }
    }
    return most;
}

/* Adds words, broken at blanks; the text begins at column `at`, its further lines at `indent`. */
static void add_wrapped(struct strbuf *s, const char *text, int indent)
{
    int at = indent;
    while (*text != '\0') {
        char word[128];
        const char *end = strchr(text, ' ');
        const size_t size = end != NULL ? (size_t)(end - text) : strlen(text);
        ASSERT(size < sizeof(word));
        memcpy(word, text, size);
        word[size] = '\0';
        if (at > indent && at + 1 + width(word) > HELP_COLUMNS) {
            strbuf_add(s, "\n%*s", indent, "");
            at = indent;
        } else if (at > indent) {
            strbuf_add(s, " ");
            at++;
        }
        strbuf_add(s, "%s", word);
        at += width(word);
        text += size + (end != NULL);
    }
    strbuf_add(s, "\n");
}

static void add_help(struct strbuf *s, const struct option_set *set)
{
    const int right = begin_of_right(set);
    strbuf_add(s, "%s", set->usage != NULL ? set->usage : "");
    for (size_t i = 0; i < set->count; i++) {
        const struct option_entry *e = &set->entries[i];
        char left[128];
        if (e->help == NULL) {
            continue;
        }
        if (e->kind == OPTION_HEADING) {
            strbuf_add(s, e->help[0] != '\0' ? "\n%s\n" : "%s\n", e->help);
            continue;
        }
        left_column(e, left, sizeof(left));
        strbuf_add(s, "%s", left);
        if (width(left) + 2 > right) {
            strbuf_add(s, "\n%*s", right, "");
        } else {
            strbuf_add(s, "%*s", right - width(left), "");
        }
        add_wrapped(s, e->help, right);
    }
    strbuf_add(s, "%s", set->after != NULL ? set->after : "");
    ASSERT(s->length < s->size);
}

/* ---- reading ---- */

struct reading {
    const struct option_set *set;
    struct option_outcome *ret;
    struct strbuf text;
    char **argv;
    int argc, at; /* the next argument */
};

static bool end_with(struct reading *r, enum option_verdict verdict)
{
    r->ret->verdict = verdict;
    return false;
}

/* "--name", or "-n" if there is no name. */
static void add_option(struct strbuf *s, const struct option_entry *e)
{
    if (e->name != NULL) {
        strbuf_add(s, "--%s", e->name);
    } else {
        strbuf_add(s, "-%c", e->letter);
    }
}

static bool apply(struct reading *r, const struct option_entry *e, const char *value)
{
    if (e->kind == OPTION_HELP) {
        add_help(&r->text, r->set);
        return end_with(r, OPTIONS_HELP);
    }
    if (e->kind == OPTION_VERSION) {
        return end_with(r, OPTIONS_VERSION);
    }
    if (take(e, value)) {
        return true;
    }
    strbuf_add(&r->text, "%s: ", r->set->program);
    add_option(&r->text, e);
    strbuf_add(&r->text, ": expected ");
    add_expected(&r->text, e);
    strbuf_add(&r->text, ", found '%s'\n", value != NULL ? value : "");
    return end_with(r, OPTIONS_WRONG);
}

/* Applies an option, with the next argument if a value is needed. */
static bool apply_next(struct reading *r, const struct option_entry *e, const char *value)
{
    if (value == NULL && option_has_value(e)) {
        if (r->at == r->argc) {
            strbuf_add(&r->text, "%s: ", r->set->program);
            add_option(&r->text, e);
            strbuf_add(&r->text, ": expected ");
            add_expected(&r->text, e);
            strbuf_add(&r->text, ", found nothing\n");
            return end_with(r, OPTIONS_WRONG);
        }
        value = r->argv[r->at++];
    }
    return apply(r, e, value);
}

static bool unknown(struct reading *r, const char *dashes, const char *name, size_t size,
                    const char *what)
{
    strbuf_add(&r->text, "%s: %s '%s%.*s'; --help lists them\n", r->set->program, what, dashes,
               (int)size, name);
    return end_with(r, OPTIONS_WRONG);
}

static bool read_long(struct reading *r, const char *name)
{
    const char *equals = strchr(name, '=');
    const size_t size = equals != NULL ? (size_t)(equals - name) : strlen(name);
    const struct option_entry *found = NULL;
    int count = 0;
    for (size_t i = 0; i < r->set->count; i++) {
        const struct option_entry *e = &r->set->entries[i];
        if (e->name != NULL && strncmp(e->name, name, size) == 0) {
            found = e;
            count++;
            if (e->name[size] == '\0') {
                count = 1;
                break;
            }
        }
    }
    if (count != 1) {
        return unknown(r, "--", name, size,
                       count == 0 ? "no option" : "several options begin with");
    }
    if (equals != NULL && !option_has_value(found) && !found->optional) {
        strbuf_add(&r->text, "%s: --%s: expected no value, found '%s'\n", r->set->program,
                   found->name, equals + 1);
        return end_with(r, OPTIONS_WRONG);
    }
    return apply_next(r, found, equals != NULL ? equals + 1 : NULL);
}

static bool read_letters(struct reading *r, const char *letters)
{
    for (; *letters != '\0'; letters++) {
        const struct option_entry *found = NULL;
        for (size_t i = 0; found == NULL && i < r->set->count; i++) {
            found = r->set->entries[i].letter == *letters ? &r->set->entries[i] : NULL;
        }
        if (found == NULL) {
            return unknown(r, "-", letters, 1, "no option");
        }
        if (option_has_value(found)) {
            return apply_next(r, found, letters[1] != '\0' ? letters + 1 : NULL);
        }
        if (!apply(r, found, NULL)) {
            return false;
        }
    }
    return true;
}

/* Moves the `count` arguments at `from` before the words that begin at `to`. */
static void move_before(char **argv, int to, int from, int count)
{
    for (int i = 0; i < count; i++) {
        char *moved = argv[from + i];
        memmove(argv + to + i + 1, argv + to + i, (size_t)(from - to) * sizeof(*argv));
        argv[to + i] = moved;
    }
}

static bool check_words(struct reading *r, int first)
{
    const int count = r->argc - first;
    const char *words = r->set->words != NULL ? r->set->words : "options only";
    if (r->set->first_word_ends || (count >= r->set->words_least && count <= r->set->words_most)) {
        return true;
    }
    if (count < r->set->words_least) {
        strbuf_add(&r->text, "%s: expected %s, found %s\n", r->set->program, words,
                   count == 0 ? "nothing" : "less");
    } else {
        strbuf_add(&r->text, "%s: expected %s, found '%s'\n", r->set->program, words,
                   r->argv[first + r->set->words_most]);
    }
    return end_with(r, OPTIONS_WRONG);
}

void options_read(const struct option_set *set, int argc, char *argv[], struct option_outcome *ret)
{
    struct reading r = {.set = set, .ret = ret, .argv = argv, .argc = argc, .at = 1};
    int first = 1; /* of the words so far */
    r.text = strbuf_init(ret->text, sizeof(ret->text));
    ret->verdict = OPTIONS_GOOD;
    while (r.at < argc) {
        const int from = r.at;
        const char *text = argv[r.at++];
        const bool ends = strcmp(text, "--") == 0;
        if (text[0] != '-' || text[1] == '\0') {
            if (set->first_word_ends) {
                break;
            }
            continue;
        }
        if (!ends && !(text[1] == '-' ? read_long(&r, text + 2) : read_letters(&r, text + 1))) {
            return;
        }
        move_before(argv, first, from, r.at - from);
        first += r.at - from;
        if (ends) {
            break;
        }
    }
    ret->first = first;
    (void)check_words(&r, first);
}
