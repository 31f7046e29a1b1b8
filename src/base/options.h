/* options.h: a command line, read by a table. One entry an option: its names, what its value may be, where it goes, and its
 * line of the help. Errors come from the same table: what was expected, what was found.
 *
 *     --name VALUE, --name=VALUE, -nVALUE, -n VALUE; -ab for two flags; --na for --name where no other begins so;
 *     "--" ends the options. Options and words may be mixed.
 *
 * Pure: nothing is printed here. What is to be printed stands in the outcome. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

enum option_kind {
    OPTION_HEADING, /* no option: a line of the help */
    OPTION_HELP,
    OPTION_VERSION,
    OPTION_FLAG,   /* bool: becomes true */
    OPTION_TEXT,   /* const char *: the argument itself */
    OPTION_NUMBER, /* double, least to most */
    OPTION_INT,    /* int, least to most */
    OPTION_COUNT,  /* int, least to most; 2K is 2048 */
    OPTION_SIZE,   /* size_t, bytes, least to most; 2K is 2048 */
    OPTION_CHOICE, /* unsigned: which of choices */
    OPTION_OWN,    /* take() reads it */
};

struct option_entry {
    const char *name; /* after "--"; NULL: has a letter only */
    char letter;      /* after "-"; 0: has a name only */
    enum option_kind kind;
    void *to;
    double least, most;                       /* both 0: any number */
    const char *const *choices;               /* ends with NULL */
    bool (*take)(const char *text, void *to); /* text: NULL where an optional value is missing */
    bool optional;                            /* OPTION_OWN: --name or --name=VALUE */
    const char *expected;                     /* OPTION_OWN: "an address"; NULL: `value` */
    const char *value;                        /* in the help: "FILE" */
    const char *help;                         /* NULL: not in the help */
};

struct option_set {
    const char *program; /* begins every error: "foliot lab eval" */
    const char *usage;   /* the help before the options, NULL: none */
    const char *after;   /* the help after them, NULL: none */
    const struct option_entry *entries;
    size_t count;
    bool first_word_ends; /* what follows the first word isn't read */
    int words_least, words_most;
    const char *words; /* "one FILE"; NULL: none are taken */
};

enum { OPTIONS_TEXT_MAX = 8192 };
enum option_verdict { OPTIONS_GOOD, OPTIONS_HELP, OPTIONS_VERSION, OPTIONS_WRONG };

struct option_outcome {
    enum option_verdict verdict;
    int first; /* OPTIONS_GOOD: argv[first] is the first word */
    char text
        [OPTIONS_TEXT_MAX]; /* OPTIONS_HELP: the help; OPTIONS_WRONG: one line about what is wrong */
};

/* argv[0] isn't looked at. The words are moved behind the options. What the entries point at is set as far as it was read. */
void options_read(const struct option_set *set, int argc, char *argv[], struct option_outcome *ret);
/* Has the option a value in the table? */
bool option_has_value(const struct option_entry *entry);
