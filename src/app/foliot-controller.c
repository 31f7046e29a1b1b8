/* foliot-controller.c: the controller's command line. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "base/bug.h"
#include "platform/config/command_line.h"
#include "service/controller/api/api.h"
#include "service/controller/api/scope.h"
#include "service/controller/fleet/fleet.h"
#include "service/controller/fleet/recording.h"
#include "service/controller/place.h"
#include "service/controller/trust/trust.h"
#include "service/record/brain_record.h"

enum { BACKUP_PAGES = 1024, JOIN_HOURS = 24 };

static struct controller_options options = {.config_path = CONTROLLER_CONFIG_DEFAULT};
static int uses = 1, hours; /* hours 0: not given */
static const char *address, *scope;

static const char usage[] =
    "usage: foliot-controller [--config FILE] [COMMAND]\n"
    "One runs for each fleet: it takes agents' reports, keeps history, serves the API. Without a "
    "command it "
    "runs.\n"
    "\n"
    "  init [--address ADDRESS]       make the authority, a join token and an admin's token;\n"
    "                                 the API's certificate is for ADDRESS, too\n"
    "  token join [--uses N] [--hours N] [--scope PATTERNS]\n"
    "                                 print a token that lets N hosts join, for N hours (24);\n"
    "                                 with a scope only hosts of these names\n"
    "  token api viewer|operator|admin [NAME] [--hours N] [--scope PATTERNS]\n"
    "                                 print a token for the API; without --hours it does not end;\n"
    "                                 with a scope a viewer sees these hosts only ('a-*,b?')\n"
    "  check                          check the whole store\n"
    "  backup FILE                    copy the store, also while the controller runs\n"
    "  restore FILE                   put a backup in the store's place (controller stopped)\n"
    "  record FILE                    copy the recording of its inputs, for foliot sim replay\n"
    "  takeover                       make this copy of the store the fleet's only one\n"
    "\n";

static const char after[] =
    "\n"
    "FOLIOT_CONTROLLER_DIR replaces data_dir (" CONTROLLER_DATA_DEFAULT ").\n"
    "Exit status: 0 done, 1 it failed, 2 wrong usage, 78 these data are a copy of another "
    "controller's.\n";

static int load_config(struct controller_config *config)
{
    struct config_error error;
    const char *dir = getenv("FOLIOT_CONTROLLER_DIR");
    const int r = controller_config_load(options.config_path, options.config_given, config, &error);
    if (r < 0) {
        fprintf(stderr, "foliot-controller: %s\n", error.text);
    } else if (dir != NULL) {
        snprintf(config->data_dir, sizeof(config->data_dir), "%s", dir);
    }
    return r;
}

/* found: NULL for nothing. */
static int expected(const char *what, const char *found)
{
    fprintf(stderr, "foliot-controller: expected %s, found %s%s%s; --help lists the commands\n",
            what, found != NULL ? "'" : "", found != NULL ? found : "nothing",
            found != NULL ? "'" : "");
    return 2;
}

/* ---- tokens ---- */

static int write_token(const char *name, const char *role, int64_t life_s,
                       char text[TOKEN_TEXT_SIZE], struct controller *c)
{
    int64_t id = 0;
    const struct store_audit audit = {.at_ns = controller_utc_ns(),
                                      .who = "command line",
                                      .source = "local",
                                      .what = "token.make",
                                      .detail = role};
    const struct token_wish wish = {
        .name = name, .role = role, .scope = scope, .life_s = life_s, .uses = uses};
    const char *step = "made";
    int r = token_make(c, &wish, text, &id);
    if (r == 0) {
        step = "written into the audit trail";
        r = store_audit_put(c->store, &audit);
    }
    if (r == 0) {
        step = "stored";
        r = store_commit(c->store);
    }
    if (r < 0) {
        fprintf(stderr, "foliot-controller: the token '%s' can't be %s: %s\n", name, step,
                r == -EEXIST ? "a token has that name: take another name" : strerror(-r));
    }
    return r;
}

static void say_join(const char *token)
{
    printf("On each host, as root:\n  foliot-agent join %s %s\n",
           address != NULL ? address : "ADDRESS-OF-THIS-CONTROLLER", token);
}

static int command_init(void)
{
    struct controller *c = calloc(1, sizeof(*c));
    struct controller_config config;
    char words[256], join[TOKEN_TEXT_SIZE], admin[TOKEN_TEXT_SIZE], name[CONTROLLER_API_NAME_SIZE];
    if (address != NULL && api_name_of(address, name) < 0) {
        fprintf(stderr,
                "foliot-controller: --address: expected a name or an address of this host, found: "
                "%s\n",
                address);
        free(c);
        return 2;
    }
    if (c == NULL) {
        fprintf(stderr, "foliot-controller: out of memory\n");
        return EXIT_FAILURE;
    }
    int r = load_config(&config);
    if (r < 0) {
        free(c);
        return EXIT_FAILURE;
    }
    r = authority_create(config.data_dir, words);
    if (r < 0) {
        fprintf(stderr, "foliot-controller: %s\n", words);
        free(c);
        return EXIT_FAILURE;
    }
    const int64_t join_hours = hours != 0 ? hours : JOIN_HOURS;
    r = address != NULL ? api_name_keep(config.data_dir, name) : 0;
    if (r < 0) {
        fprintf(stderr, "foliot-controller: %s: the name of --address can't be kept: %s\n",
                config.data_dir, strerror(-r));
    }
    r = r < 0 ? r : controller_open(c, &options, false);
    r = r < 0 ? r : write_token("first", "join", join_hours * 3600, join, c);
    r = r < 0 ? r : write_token("admin", "admin", 0, admin, c);
    if (r == 0) {
        printf("The authority, its key and the store are in %s.\n\n", config.data_dir);
        say_join(join);
        printf(
            "(valid for %lld host%s and %lld hours; more tokens: foliot-controller token join)\n\n",
            (long long)uses, uses == 1 ? "" : "s", (long long)join_hours);
        printf("The API's first token, for an admin. It is shown only this once:\n  %s\n", admin);
        printf("For TLS, browsers and clients must trust %s/api-authority.pem.\n", config.data_dir);
    }
    controller_close(c);
    free(c);
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* A running controller holds the store, so it makes the token itself, through its API. */
static int command_token(int argc, char **argv)
{
    const bool join = argc >= 2 && strcmp(argv[1], "join") == 0;
    const char *role = join ? "join" : argc >= 3 ? argv[2] : "";
    const char *given = !join && argc >= 4 ? argv[3] : NULL;
    char text[TOKEN_TEXT_SIZE], name[TOKEN_NAME_SIZE];
    const bool api = argc >= 3 && strcmp(argv[1], "api") == 0 &&
                     (strcmp(role, "viewer") == 0 || strcmp(role, "operator") == 0 ||
                      strcmp(role, "admin") == 0);
    if (!join && !api) {
        return expected("token: join, or api with viewer, operator or admin", argc >= 3   ? argv[2]
                                                                              : argc >= 2 ? argv[1]
                                                                                          : NULL);
    }
    if (argc > (join ? 2 : 4)) {
        return expected(join ? "token join: options only" : "token api: one name only",
                        argv[argc - 1]);
    }
    if (scope != NULL && !join && strcmp(role, "viewer") != 0) {
        return expected("token api: --scope with a viewer only", role);
    }
    struct controller *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        fprintf(stderr, "foliot-controller: out of memory\n");
        return EXIT_FAILURE;
    }
    int r = controller_open(c, &options, false);
    if (r == -EBUSY) {
        fputs("foliot-controller: the controller runs: use foliot token (man foliot)\n", stderr);
    }
    const int64_t life_hours = hours != 0 ? hours : join ? JOIN_HOURS : 0; /* 0: it does not end */
    if (r == 0) {
        token_free_name(c, role, name);
        r = write_token(given != NULL ? given : name, role, life_hours * 3600, text, c);
    }
    if (r == 0 && join) {
        say_join(text);
    } else if (r == 0) {
        puts(text);
    }
    controller_close(c);
    free(c);
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* ---- the store ---- */

static int open_store(struct store **ret_store, char path[CONTROLLER_PATH_SIZE + 32])
{
    struct controller_config config;
    char words[256];
    int r = load_config(&config);
    if (r < 0) {
        return r;
    }
    snprintf(path, CONTROLLER_PATH_SIZE + 32, "%s/store.db", config.data_dir);
    const struct store_options store = {.path = path, .read_only = true};
    r = store_open(&store, ret_store, words);
    if (r < 0) {
        fprintf(stderr, "foliot-controller: %s\n", words);
    }
    return r;
}

static int command_check(void)
{
    struct store *s = NULL;
    char path[CONTROLLER_PATH_SIZE + 32], words[256] = "";
    int r = open_store(&s, path);
    if (r == 0) {
        r = store_check(s, words);
        printf("%s: %s\n", path, r == 0 ? "good" : words[0] != 0 ? words : strerror(-r));
    }
    store_close(s);
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int command_backup(const char *to)
{
    struct store *s = NULL;
    struct store_backup *b = NULL;
    char path[CONTROLLER_PATH_SIZE + 32];
    int r = open_store(&s, path);
    if (r == 0) {
        r = store_backup_open(s, to, &b);
        while (r == 0 && (r = store_backup_step(b, BACKUP_PAGES)) > 0) {
            r = 0;
        }
        store_backup_close(b);
        if (r < 0) {
            fprintf(stderr, "foliot-controller: %s: %s\n", to,
                    r == -EEXIST ? "is there already: a backup replaces nothing" : strerror(-r));
        } else {
            printf("%s: copied from %s. The authority's keys beside it are not in it: keep them "
                   "apart\n",
                   to, path);
        }
    }
    store_close(s);
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Makes the store the fleet's own: its numbers are higher than those of any other copy. */
static int make_own(struct store *s, const char *path, const char **ret_step)
{
    *ret_step = "the number of the list of members can't be stored";
    int r = fleet_renumber(s);
    if (r == 0) {
        *ret_step = "that this controller is the newest can't be stored";
        r = instance_take(s);
    }
    if (r == 0) {
        *ret_step = "where the store is can't be stored";
        r = place_take(s, path);
    }
    return r;
}

/* Opens, checks and copies the backup. words: the store's own error text, if it has one. */
static int copy_backup(const char *from, const char *to, char words[256], const char **ret_step)
{
    const struct store_options options_of = {.path = from, .read_only = true};
    struct store *s = NULL;
    struct store_backup *b = NULL;
    *ret_step = "the backup can't be opened";
    int r = store_open(&options_of, &s, words);
    if (r == 0) {
        *ret_step = "the backup is damaged";
        r = store_check(s, words);
    }
    if (r == 0) {
        *ret_step = "the backup can't be copied";
        unlink(to);
        r = store_backup_open(s, to, &b);
    }
    while (r == 0 && (r = store_backup_step(b, BACKUP_PAGES)) > 0) {
        r = 0;
    }
    store_backup_close(b);
    store_close(s);
    return r;
}

/* Puts the copy in place. The old store stays in the folder under another name. */
static int put_in_place(const char *fresh, const char *path, const char **ret_step)
{
    static const char *const parts[] = {"", "-wal", "-shm"};
    char part[CONTROLLER_PATH_SIZE + 48], aside[CONTROLLER_PATH_SIZE + 64];
    *ret_step = "the old store can't be put aside";
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
        snprintf(part, sizeof(part), "%s%s", path, parts[i]);
        snprintf(aside, sizeof(aside), "%s.damaged%s", path, parts[i]);
        if (access(part, F_OK) == 0 && rename(part, aside) < 0) {
            return -errno;
        }
    }
    *ret_step = "the copy can't be put in the store's place";
    return rename(fresh, path) < 0 ? -errno : 0;
}

static int failed(const char *what, const char *step, const char *words, int r)
{
    fprintf(stderr, "foliot-controller: %s: %s: %s\n", what, step,
            words[0] != 0 ? words : strerror(-r));
    return EXIT_FAILURE;
}

/* The backup is copied into the folder and checked. Only then does it replace the store. */
static int command_restore(const char *from)
{
    struct controller_config config;
    struct store *s = NULL;
    char path[CONTROLLER_PATH_SIZE + 32], fresh[CONTROLLER_PATH_SIZE + 48], words[256] = "";
    const char *step = "the store can't be opened";
    if (load_config(&config) < 0) {
        return EXIT_FAILURE;
    }
    snprintf(path, sizeof(path), "%s/store.db", config.data_dir);
    snprintf(fresh, sizeof(fresh), "%s.restored", path);
    const struct store_options own = {.path = path};
    int r = store_open(&own, &s, words);
    store_close(s);
    if (r == -EBUSY) {
        fprintf(stderr, "foliot-controller: %s\n", words);
        return EXIT_FAILURE;
    }
    words[0] = 0; /* a damaged store is no error: it is being replaced */
    s = NULL;
    r = copy_backup(from, fresh, words, &step);
    if (r == 0) {
        r = put_in_place(fresh, path, &step);
    }
    if (r == 0) {
        step = "the restored store can't be opened";
        r = store_open(&own, &s, words);
    }
    if (r == 0) {
        r = make_own(s, path, &step);
        store_close(s);
    }
    if (r < 0) {
        return failed(from, step, words, r);
    }
    printf("%s: restored; the old store is beside it as store.db.damaged. Hosts and tokens are "
           "those of the backup: what "
           "was removed since is back, hosts that joined since must join again\n",
           path);
    return EXIT_SUCCESS;
}

/* For data that were moved or copied. The person who runs it makes sure that the other controller never runs again. */
static int command_takeover(void)
{
    struct controller_config config;
    struct store *s = NULL;
    char path[CONTROLLER_PATH_SIZE + 32], words[256] = "";
    const char *step = "the store can't be opened";
    if (load_config(&config) < 0) {
        return EXIT_FAILURE;
    }
    snprintf(path, sizeof(path), "%s/store.db", config.data_dir);
    const struct store_options options_of = {.path = path};
    int r = store_open(&options_of, &s, words);
    if (r == 0) {
        r = make_own(s, path, &step);
        store_close(s);
    }
    if (r < 0) {
        return failed(path, step, words, r);
    }
    printf("%s is the fleet's store from now on. Never start the controller that had it before: "
           "hosts that joined there since the copy must join again here\n",
           path);
    return EXIT_SUCCESS;
}

/* Copies the recording of the running controller, or of the last one that ran. */
static int command_record(const char *to)
{
    struct controller_config config;
    char path[CONTROLLER_PATH_SIZE + 32];
    int64_t bytes = 0;
    if (load_config(&config) < 0) {
        return EXIT_FAILURE;
    }
    snprintf(path, sizeof(path), "%s/" RECORD_FILE, config.data_dir);
    const int r = brain_record_copy(path, to, &bytes);
    if (r == -ENOENT && access(path, F_OK) < 0) {
        fprintf(stderr,
                "foliot-controller: %s: expected a recording, found none: set record_mib in the "
                "configuration and restart the controller\n",
                path);
    } else if (r == -EEXIST) {
        fprintf(stderr, "foliot-controller: %s: is there already: a recording replaces nothing\n",
                to);
    } else if (r < 0) {
        fprintf(stderr, "foliot-controller: %s to %s: %s\n", path, to,
                r == -EPROTO    ? "expected a recording, found something else or damage"
                : r == -ESTALE  ? "expected a recording of this build, found one of another build"
                : r == -ENODATA ? "nothing is recorded yet"
                                : strerror(-r));
    } else {
        printf("%s: %lld bytes; foliot sim replay %s plays it\n", to, (long long)bytes, to);
    }
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int run_command(int argc, char **argv)
{
    static const struct {
        const char *name, *word; /* NULL: takes none */
        int (*plain)(void);
        int (*with_word)(const char *word);
    } commands[] = {
        {"init", NULL, command_init, NULL},           {"check", NULL, command_check, NULL},
        {"takeover", NULL, command_takeover, NULL},   {"backup", "a file", NULL, command_backup},
        {"restore", "a file", NULL, command_restore}, {"record", "a file", NULL, command_record},
    };
    char what[64];
    if (argc == 0) {
        return controller_run(&options);
    }
    if (strcmp(argv[0], "token") == 0) {
        return command_token(argc, argv);
    }
    for (size_t i = 0; i < ARRAY_COUNT(commands); i++) {
        const int words = commands[i].word != NULL ? 2 : 1;
        if (strcmp(argv[0], commands[i].name) != 0) {
            continue;
        }
        if (argc == words) {
            return words == 2 ? commands[i].with_word(argv[1]) : commands[i].plain();
        }
        snprintf(what, sizeof(what), "%s: %s", argv[0],
                 words == 2 ? commands[i].word : "options only");
        return expected(what, argc < words ? NULL : argv[words]);
    }
    return expected("a command", argv[0]);
}

static bool take_config(const char *path, void *to)
{
    struct controller_options *o = to;
    o->config_path = path;
    o->config_given = true;
    return true;
}

static bool take_scope(const char *text, void *to)
{
    *(const char **)to = text;
    return text[0] != '\0' && scope_good(text);
}

int main(int argc, char **argv)
{
    static const struct option_entry entries[] = {
        {"config", 'c', OPTION_OWN, &options, .take = take_config, .value = "FILE",
         .help = "default " CONTROLLER_CONFIG_DEFAULT " if that file exists"},
        {"address", 0, OPTION_TEXT, &address, .value = "ADDRESS",
         .help = "init: a name or an address of this host"},
        {"uses", 0, OPTION_INT, &uses, 1, 999999, .value = "N",
         .help = "how many hosts may join by a token, default 1"},
        {"hours", 0, OPTION_INT, &hours, 1, 999999, .value = "N", .help = "how long a token lasts"},
        {"scope", 0, OPTION_OWN, &scope, .take = take_scope, .value = "PATTERNS",
         .expected = "names or patterns of hosts, such as 'a-*,b?'",
         .help = "names of hosts: patterns, with commas between them"},
        {"help", 'h', OPTION_HELP, .help = "this text"},
        {"version", 'V', OPTION_VERSION, .help = "version"},
    };
    const struct option_set set = {.program = "foliot-controller",
                                   .usage = usage,
                                   .after = after,
                                   .entries = entries,
                                   .count = ARRAY_COUNT(entries),
                                   .words_most = argc,
                                   .words = "a command"};
    int first = 0;
    const int status = command_line_read(&set, argc, argv, &first);
    if (status != COMMAND_LINE_GOOD) {
        return status;
    }
    setvbuf(stderr, NULL, _IOLBF, 0);
    return run_command(argc - first, argv + first);
}
