/* options.h: reads a command line by a table. Each option has one entry: its names, its allowed values, its destination, and its
 * line of the help. Errors come from the same table: the expected and the found value.
 *
 *   --name VALUE, --name=VALUE, -nVALUE, -n VALUE; -ab for two flags; --na for --name if no other option begins so;
 *   "--" ends the options. Options and words may be mixed.
 *
 * Pure: it prints nothing. The outcome has the text to print. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

enum option_kind {
    OPTION_HEADING, /* no option: a line of the help */
    OPTION_HELP,
    OPTION_VERSION,
    OPTION_FLAG,   /* bool: set to true */
    OPTION_TEXT,   /* const char *: the argument itself */
    OPTION_NUMBER, /* double, least to most */
    OPTION_INT,    /* int, least to most */
    OPTION_COUNT,  /* int, least to most; 2K is 2048 */
    OPTION_SIZE,   /* size_t, bytes, least to most; 2K is 2048 */
    OPTION_CHOICE, /* unsigned: the index of the choice */
    OPTION_OWN,    /* take() reads the value */
};

struct option_entry {
    const char *name; /* after "--"; NULL: the option has only a letter */
    char letter;      /* after "-"; 0: the option has only a name */
    enum option_kind kind;
    void *to;
    double least, most;                       /* both 0: any number */
    const char *const *choices;               /* ends with NULL */
    bool (*take)(const char *text, void *to); /* text: NULL if an optional value is missing */
    bool optional;                            /* OPTION_OWN: --name or --name=VALUE */
    const char *expected;                     /* OPTION_OWN: "an address"; NULL: `value` */
    const char *value;                        /* in the help: "FILE" */
    const char *help;                         /* NULL: not shown in the help */
};

struct option_set {
    const char *program; /* begins every error: "foliot lab eval" */
    const char *usage;   /* the help before the options; NULL: none */
    const char *after;   /* the help after them; NULL: none */
    const struct option_entry *entries;
    size_t count;
    bool first_word_ends; /* arguments after the first word aren't read */
    int words_least, words_most;
    const char *words; /* "one FILE"; NULL: no words are allowed */
};

enum { OPTIONS_TEXT_MAX = 8192 };
enum option_verdict { OPTIONS_GOOD, OPTIONS_HELP, OPTIONS_VERSION, OPTIONS_WRONG };

struct option_outcome {
    enum option_verdict verdict;
    int first; /* OPTIONS_GOOD: the index of the first word in argv */
    char
        text[OPTIONS_TEXT_MAX]; /* OPTIONS_HELP: the help; OPTIONS_WRONG: one line with the error */
};

/* argv[0] is ignored. The words are moved behind the options. After an error, values that were read before it are set. */
void options_read(const struct option_set *set, int argc, char *argv[], struct option_outcome *ret);
/* True if the table's option has a value. */
bool option_has_value(const struct option_entry *entry);
