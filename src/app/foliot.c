/* foliot.c: the command `foliot`: a table of its commands, and the search for one in it. */
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/foliot_command.h"
#include "app/foliot_foreign.h"
#include "base/bug.h"
#include "lab/cmd.h"
#include "sim/sim.h"

static int command_help(int argc, char *argv[]);

static int command_lab(int argc, char *argv[])
{
    return lab_main(argc, argv);
}

static int command_sim(int argc, char *argv[])
{
    return sim_main(argc, argv);
}

#define API "  [--json] [--controller URL] [--authority FILE] [--token-file FILE]"
#define ASK                                                                                        \
    "[--json] [--watch] [--interval SECONDS] [--host HOST] [--lab LAB] [--all] [--socket PATH]"

/* The exit statuses 2 and 3 of most commands. */
#define ASKED "2 wrong usage, or no such thing; 3 no answer, or no permission"

static const struct command commands[] = {
    {"this host, by its agent", "status", ASK,
     "this host's health: clock, mesh, links, open findings", command_status,
     "0 all is well; 1 something is not; " ASKED},
    {NULL, "clock", ASK, "the host's clocks on the fleet's timeline, their bounds and edges",
     command_clock, "0 synchronised; 1 not synchronised; " ASKED},
    {NULL, "mesh",
     "[--paths] " ASK " | --full [--rail N] [--json] [--controller URL] [--authority FILE] "
     "[--token-file FILE]",
     "one-way delay and loss of every path, as a heat map; all pairs of NICs on demand",
     command_mesh, "0 all paths are well; 1 a path is dead, or a pair was not measured; " ASKED,
     help_of_mesh},
    {NULL, "links", ASK, "NIC and RDMA ports: carrier, flaps, errors", command_links,
     "0 all ports are well; 1 a port is not; " ASKED},
    {NULL, "findings", ASK " | --controller URL [--json] [--authority FILE] [--token-file FILE]",
     "what is wrong, since when, and what to do", command_findings,
     "0 nothing is wrong; 1 a finding is open; " ASKED, help_of_findings},
    {NULL, "jobs",
     "[ID [--save FILE]] " ASK " | compare FILE FILE [--json] | [ID | compare ID ID] "
     "--controller URL [--json] [--authority FILE] [--token-file FILE]",
     "jobs with Foliot's plugin: ranks, lanes, rates, delays, failovers and their reasons",
     command_jobs, "0 done; 1 a rank has no path to another one; " ASKED, help_of_jobs},
    {NULL, "doctor", ASK, "check this host's setup: permissions, ports, stamps, versions",
     command_doctor,
     "0 every check is ok or skipped; 1 a check warns or fails, also because no agent answers; 2 "
     "wrong usage; 3 the lab can't be read"},
    {NULL, "audit",
     "[run] [--facts PATH] [--all] [--json] [--junit FILE] [--html FILE] [--root FOLDER] [--config "
     "FILE] | show PATH... [--all] [--json] [--junit FILE] [--html FILE] [--config FILE] | gate "
     "[--format FORM] [--age SECONDS] [--known FILE] [--facts PATH] [--root FOLDER] [--config "
     "FILE] | facts [-o|--output FILE] [--root FOLDER] | capture FOLDER [--root FOLDER] | checks "
     "[--json] [--markdown] [--man] | "
     "explain CHECK [--json] | test CHECK [--fail N] [--warn N] [--declared TEXT] PATH... [--json] "
     "[--config FILE] | run --fleet [HOST...] [--matrix] [--ip 4|6] [--bandwidth] [--nccl] "
     "[--junit "
     "FILE] [--html FILE] | show --fleet [RUN] [--junit FILE] [--html FILE] | gate --fleet HOST "
     "[--format FORM] | test --fleet CHECK [--fail N] [--warn N] [--declared TEXT] [--since TIME] "
     "[--config FILE] | nodes [RUN] | matrix [RUN] | runs | stop RUN | "
     "diff RUN RUN | baseline [list | accept RUN [NAME] | remove RUN]" API,
     "checks of configuration and cabling, against rules and other hosts; whether a host may take "
     "a job",
     command_audit,
     "0 all that applies passes; 1 something fails, is warned of or differs; 2 wrong usage; 3 "
     "something is not known, or could not be asked. Each form has its own: foliot help audit gate",
     audit_words},
    {NULL, "selftest",
     "clock [--json] [--host HOST] [--lab LAB] [--socket PATH] | clock --nics NAME,... [--peer "
     "ADDRESS] [--seconds S] [--json] | rdma [--device NAME] [--rounds N] [--look MS] [--library "
     "FILE] "
     "[--root FOLDER] [--record FILE] [--json]",
     "tests of this host: the clock's bound, the stamps and clocks of NICs, and whether an "
     "RDMA "
     "device's queue pair is silent when it must be",
     command_selftest, "0 passed; 1 failed; 2 wrong usage; 3 there was nothing to ask or to try",
     help_of_selftest},
    {NULL, "record", "[-o|--output FILE] [--host HOST] [--lab LAB] [--socket PATH]",
     "save the last minutes of the agent's inputs, for foliot sim replay", command_record,
     "0 written; 2 wrong usage; 3 no answer, or the file could not be written"},
    {NULL, "support-bundle",
     "[-o|--output FILE] [--config FILE] [--host HOST] [--lab LAB] [--socket PATH]",
     "pack status, configuration and logs, without secrets", command_support_bundle,
     "0 written; 2 wrong usage; 3 the file could not be written"},
    {"the whole fleet, by its controller", "alerts",
     "[list [--all]] | ack N | silence --host P|--element P|--rule P [--for TIME] [--why TEXT] "
     "[--maintenance] | silences | unsilence N | test RULE [--since TIME] [--file FILE] | "
     "check FILE | export --prometheus [--file FILE] | metrics" API,
     "incidents of the fleet, who was notified, silences; check rules and try them on the past",
     command_alerts,
     "0 done, and nothing is open; 1 an incident is neither acknowledged nor silenced, or the file "
     "has a mistake; " ASKED,
     help_of_alerts},
    {NULL, "changes", "[--since 90min|2h|1d] [--host HOST] [--all]" API,
     "what happened to the fleet within the last hour: hosts, links, jobs, incidents, "
     "configuration",
     command_changes, "0 done; " ASKED},
    {NULL, "host",
     "list | check NAME [--seconds N] | remove NAME | token [--uses N] | rotate [authority "
     "[--finish] | fleet-key [--after TIME]]" API,
     "the fleet's members and keys; whether a host may join a job", command_host,
     "0 done, or yes; 1 check: no, or unknown; " ASKED, help_of_host},
    {NULL, "token",
     "[list] | make viewer|operator|admin NAME [--hours N] [--scope PATTERNS] | join [NAME] "
     "[--uses N] [--hours N] [--scope PATTERNS] | revoke NAME|ID" API,
     "tokens for the API and for joining hosts", command_token, "0 done; " ASKED, help_of_token},
    {NULL, "config",
     "[show] | diff FILE | apply FILE [--canary PERCENT [--watch TIME] [--wait]] [--why TEXT] | "
     "history | rollback [VERSION] | observe on|off" API,
     "the configuration of the fleet's agents, in versions; observe on or off for all",
     command_config,
     "0 done; 1 diff: the file would change something; apply --wait: the version was taken back; "
     "another change is under way; " ASKED,
     help_of_config},
    {NULL, "levels", API, "service levels of the fleet: met or broken, since when, by whom",
     command_levels, "0 all are met; 1 one is not; " ASKED},
    {NULL, "topology", "[show] | declare FILE [--why TEXT] | history" API,
     "the declared topology, and its differences from the real one", command_topology,
     "0 done, and nothing differs; 1 something differs; " ASKED, help_of_topology},
    {"tools", "keygen", "[--rotate | --host] [--id ID] FILE",
     "make the fleet's key file, or add the next key to it", command_keygen,
     "0 made; 1 there is such a file already; 2 wrong usage; 3 the file can't be written"},
    {NULL, "perf", "[OPERATION] [OPTIONS]",
     "collectives through a network plugin, measured and checked, as nccl-tests print them",
     command_perf},
    {NULL, "lab", "[--name NAME] up|status|exec|fault|run|down …",
     "a fleet on this machine: hosts, clocks, switches and faults", command_lab},
    {NULL, "sim", "run SCENARIO… | replay FILE | swarm | scale",
     "a fleet in a simulated world: scenarios, replays of recordings, random worlds, cost of size",
     command_sim},
    {NULL, "help", "[COMMAND [WORD]]", "this list, or one command's usage", command_help},
};

const struct command *command_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_COUNT(commands); i++) {
        if (strcmp(commands[i].name, name) == 0) {
            return &commands[i];
        }
    }
    return NULL;
}

enum { HELP_COLUMNS = 96 };

/* Prints `size` bytes of text. The text begins at column `at`; further lines are indented. A bracket that fits a line is not
 * broken. */
static void put_wrapped(FILE *out, const char *text, size_t size, int at, int indent)
{
    while (size > 0) {
        size_t word = 0;
        for (int depth = 0; word < size && (depth > 0 || text[word] != ' '); word++) {
            depth += (text[word] == '[') - (text[word] == ']');
        }
        /* the bracket is too long: it is broken at its blanks */
        if (word > (size_t)(HELP_COLUMNS - indent)) {
            const char *blank = memchr(text, ' ', word);
            word = blank != NULL ? (size_t)(blank - text) : word;
        }
        if (at > indent && at + 1 + (int)word > HELP_COLUMNS) {
            fprintf(out, "\n%*s", indent, "");
            at = indent;
        } else if (at > indent) {
            putc(' ', out);
            at++;
        }
        fwrite(text, 1, word, out);
        at += (int)word;
        word += word < size;
        text += word;
        size -= word;
    }
    putc('\n', out);
}

/* The length up to the next " | " outside of brackets, or to the text's end. */
static size_t form_length(const char *text, size_t size)
{
    int depth = 0;
    for (size_t i = 0; i + 2 < size; i++) {
        depth += (text[i] == '[') - (text[i] == ']');
        if (depth == 0 && memcmp(text + i, " | ", 3) == 0) {
            return i;
        }
    }
    return size;
}

/* The help of a form: the entry with the longest words that the form begins with. NULL: it has none. */
static const struct command_word *word_of(const struct command *command, const char *form)
{
    const struct command_word *best = NULL;

    form += form[0] == '[';
    for (const struct command_word *w = command->words; w != NULL && w->word != NULL; w++) {
        const size_t size = strlen(w->word);
        if (strncmp(form, w->word, size) == 0 && strchr(" ]|", form[size]) != NULL &&
            (best == NULL || size > strlen(best->word))) {
            best = w;
        }
    }
    return best;
}

static bool begins_with(const struct command_word *w, const char *word)
{
    const size_t size = strcspn(w->word, " ");

    return strlen(word) == size && memcmp(w->word, word, size) == 0;
}

/* The first of these words with help of its own; NULL: none. */
static const char *word_with_help(const struct command *command, int count, char *const words[])
{
    for (int i = 0; i < count; i++) {
        for (const struct command_word *w = command->words; w != NULL && w->word != NULL; w++) {
            if (begins_with(w, words[i])) {
                return words[i];
            }
        }
    }
    return NULL;
}

static void put_sentence(FILE *out, const char *before, const char *text)
{
    const int at = fprintf(out, "        %s", before);

    put_wrapped(out, text, strlen(text), at, 8);
}

static const char *exits_of(const struct command *command)
{
    return command->exits != NULL ? command->exits
                                  : "0 done, and all is well; 1 something was found; " ASKED;
}

enum { OPTION_COLUMN = 22 };

/* Prints the options that occur in the text, from this column on. */
static void put_options(FILE *out, const struct command *command, const char *text, size_t size,
                        int indent)
{
    const char *option, *does;

    for (size_t at = 0; (does = help_option(command, &at, &option)) != NULL;) {
        if (command_text_option(text, size, option + 2) >= 0) {
            const int column = indent + OPTION_COLUMN - 2;
            fprintf(out, "%*s%-*s", indent, "", OPTION_COLUMN - 2, option);
            put_wrapped(out, does, strlen(does), column, column);
        }
    }
}

static void put_form(FILE *out, const struct command *command, const char *form, size_t size,
                     const char *only)
{
    const struct command_word *w = word_of(command, form);

    if (only != NULL && (w == NULL || !begins_with(w, only))) {
        return;
    }
    const int at = fprintf(out, "%s  foliot %s", only != NULL ? "\n" : "", command->name);
    put_wrapped(out, form, size, at, size > 0 ? 6 : at);
    if (w != NULL) {
        put_sentence(out, "", w->does);
    }
    if (w != NULL && only != NULL && w->prints != NULL) {
        put_sentence(out, "It prints", w->prints);
    }
    if (w != NULL && only != NULL) {
        put_sentence(out, "Exit status:", w->exits != NULL ? w->exits : exits_of(command));
        put_options(out, command, form, size, 8);
    }
}

void command_usage(const struct command *command, int count, char *const words[], FILE *out)
{
    const char *text = command->arguments, *all = strstr(text, "  ");
    const char *only = word_with_help(command, count, words);
    size_t size = all != NULL ? (size_t)(all - text) : strlen(text);

    fprintf(out, "foliot %s:", command->name);
    put_wrapped(out, command->summary, strlen(command->summary), 8 + (int)strlen(command->name), 2);
    fputs(only != NULL ? "" : "\nusage:\n", out);
    for (bool more = true; more;) {
        const size_t form = form_length(text, size);
        put_form(out, command, text, form, only);
        more = form < size;
        text += more ? form + 3 : 0;
        size -= more ? form + 3 : 0;
    }
    if (only != NULL) {
        fprintf(out, "\nfoliot %s --help: all forms; man foliot: all about it\n", command->name);
        return;
    }
    if (all != NULL) {
        fputs("with each:", out);
        put_wrapped(out, all + 2, strlen(all + 2), 10, 2);
    }
    if (strstr(command->arguments, "--") != NULL) {
        fputs("\noptions:\n", out);
        put_options(out, command, command->arguments, strlen(command->arguments), 2);
    }
    const int at = fprintf(out, "\nexit status:");
    put_wrapped(out, exits_of(command), strlen(exits_of(command)), at - 1, 2);
    fputs("man foliot: all about it\n", out);
}

enum { WORDS_MOST = 24 }; /* most words at the beginnings of one command's forms */

struct form_words {
    struct {
        const char *text;
        int size;
    } list[WORDS_MOST];
    size_t count;
};

static bool form_has(const struct form_words *w, const char *text, size_t size)
{
    for (size_t i = 0; i < w->count; i++) {
        if ((size_t)w->list[i].size == size && memcmp(w->list[i].text, text, size) == 0) {
            return true;
        }
    }
    return false;
}

/* The words at the beginning of a form: "list" of "[list [--all]]", three of "run|show|gate --fleet". */
static void form_words(const char *form, size_t size, struct form_words *w)
{
    size_t at = size > 0 && form[0] == '[';

    while (at < size && form[at] >= 'a' && form[at] <= 'z') {
        const size_t word = strspn(form + at, "abcdefghijklmnopqrstuvwxyz-");
        if (w->count < WORDS_MOST && !form_has(w, form + at, word)) {
            w->list[w->count].text = form + at;
            w->list[w->count++].size = (int)word;
        }
        at += word;
        at += at < size && form[at] == '|';
    }
}

/* The next form of a usage. *size: the bytes that are left. */
static size_t next_form(const char **text, size_t *size, const char **ret_form)
{
    const size_t form = form_length(*text, *size);
    const size_t step = form < *size ? form + 3 : form;

    *ret_form = *text;
    *text += step;
    *size -= step;
    return form;
}

int command_wrong_words(const char *name, int count, char *const words[])
{
    const struct command *command = command_find(name);
    const char *const all = strstr(command->arguments, "  "), *text = command->arguments, *form;
    const size_t whole = all != NULL ? (size_t)(all - text) : strlen(text);
    struct form_words known = {.count = 0};

    for (size_t size = whole; size > 0;) {
        struct form_words own = {.count = 0};
        const size_t length = next_form(&text, &size, &form);
        form_words(form, length, &own);
        form_words(form, length, &known);
        if (count > 0 && form_has(&own, words[0], strlen(words[0]))) {
            fprintf(stderr, "foliot %s: expected: foliot %s %.*s\n", name, name, (int)length, form);
        }
    }
    fprintf(stderr, "foliot %s:", name);
    if (known.count == 0) {
        fputs(" expected options only,", stderr);
    } else if (count == 0 || !form_has(&known, words[0], strlen(words[0]))) {
        fputs(" expected one of", stderr);
        for (size_t i = 0; i < known.count; i++) {
            fprintf(stderr, "%s %.*s", i > 0 ? "," : "", known.list[i].size, known.list[i].text);
        }
        putc(',', stderr);
    }
    fputs(count > 0 ? " found" : " found nothing", stderr);
    for (int i = 0; i < count; i++) {
        fprintf(stderr, " '%s'", foreign_text(words[i]).text);
    }
    fprintf(stderr, "\nfoliot %s --help: all forms\n", name);
    return EXIT_USAGE;
}

static void usage(FILE *out)
{
    fputs("usage: foliot COMMAND [OPTIONS]\n", out);
    for (size_t i = 0; i < ARRAY_COUNT(commands); i++) {
        if (commands[i].group != NULL) {
            fprintf(out, "\n%s:\n", commands[i].group);
        }
        const int at = fprintf(out, "  %-15s ", commands[i].name);
        put_wrapped(out, commands[i].summary, strlen(commands[i].summary), at, at);
    }
    fputs("\n  foliot --version\n  foliot COMMAND --help\n", out);
}

static size_t smallest(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Levenshtein distance; names are short, so a fixed row suffices. */
static size_t distance(const char *a, const char *b)
{
    size_t row[64];
    const size_t length = strlen(b);

    if (length >= ARRAY_COUNT(row)) {
        return SIZE_MAX;
    }
    for (size_t j = 0; j <= length; j++) {
        row[j] = j;
    }
    for (size_t i = 1; a[i - 1] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= length; j++) {
            const size_t above = row[j];
            const size_t changed = diagonal + (a[i - 1] != b[j - 1]);
            row[j] = smallest(smallest(above, row[j - 1]) + 1, changed);
            diagonal = above;
        }
    }
    return row[length];
}

static int unknown_command(const char *name)
{
    const struct command *nearest = NULL;
    size_t best = 3; /* a larger distance is no typo */

    for (size_t i = 0; i < ARRAY_COUNT(commands); i++) {
        const size_t d = distance(name, commands[i].name);
        if (d < best) {
            best = d;
            nearest = &commands[i];
        }
    }
    fprintf(stderr, "foliot: no command '%s'", name);
    if (nearest != NULL) {
        fprintf(stderr, "; did you mean 'foliot %s'?", nearest->name);
    }
    fputs("\nfoliot help: the list of commands\n", stderr);
    return EXIT_USAGE;
}

static int command_help(int argc, char *argv[])
{
    const struct command *command;

    if (argc < 2) {
        usage(stdout);
        return EXIT_WELL;
    }
    command = command_find(argv[1][0] == '-' ? "help" : argv[1]);
    if (command == NULL) {
        return unknown_command(argv[1]);
    }
    command_usage(command, argc - 2, argv + 2, stdout);
    return EXIT_WELL;
}

/* Tables are laid out by the width of characters. In the plain C locale libsmartcols would escape all characters beyond ASCII. */
static void use_utf8(void)
{
    if (setlocale(LC_CTYPE, "") == NULL || strcmp(nl_langinfo(CODESET), "UTF-8") != 0) {
        (void)setlocale(LC_CTYPE, "C.UTF-8");
    }
}

int main(int argc, char *argv[])
{
    const struct command *command;

    use_utf8();
    if (argc < 2) {
        usage(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        usage(stdout);
        return EXIT_WELL;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        puts("foliot " FOLIOT_VERSION);
        return EXIT_WELL;
    }
    command = command_find(argv[1]);
    if (command == NULL) {
        return unknown_command(argv[1]);
    }
    return command->run(argc - 1, argv + 1);
}
