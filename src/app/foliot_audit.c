/* foliot_audit.c: `foliot audit`: facts of this host, the catalogue, results from sheets, the gate. */
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "app/foliot_audit.h"
#include "app/foliot_command.h"
#include "app/foliot_foreign.h"
#include "core/audit/gate.h"

#define CONFIG_USUAL "/etc/foliot/audit.yaml"
#define KNOWN_USUAL  "/run/foliot-inspect/gate.json"

enum { LOOK_AGAIN_MS = 1000 };

static unsigned captured; /* files and links of a capture */

int audit_settings_of(const struct audit_options *o, struct audit_file *file)
{
    struct config_error error;
    const char *path = o->config != NULL                 ? o->config
                       : access(CONFIG_USUAL, R_OK) == 0 ? CONFIG_USUAL
                                                         : NULL;

    if (audit_file_load(path, file, &error) < 0) {
        fprintf(stderr, "foliot audit: %s\n", foreign_text(error.text).text);
        return EXIT_USAGE;
    }
    return EXIT_WELL;
}

static int facts(const struct audit_options *o)
{
    size_t size;
    char *text = sheets_inspect_text(o->root, &size);
    FILE *out = stdout;
    int status = EXIT_WELL;

    if (text == NULL) {
        return EXIT_UNREACHABLE;
    }
    if (o->output != NULL) {
        out = fopen(o->output, "we");
    }
    if (out == NULL || fwrite(text, 1, size, out) != size || fflush(out) != 0) {
        fprintf(stderr, "foliot audit: %s: %s\n",
                o->output != NULL ? foreign_text(o->output).text : "output", strerror(errno));
        status = EXIT_UNREACHABLE;
    }
    if (out != NULL && out != stdout) {
        fclose(out);
    }
    free(text);
    return status;
}

static int count_files(const char *path, const struct stat *status, int kind, struct FTW *where)
{
    (void)path;
    (void)status;
    (void)where;
    captured += kind == FTW_F || kind == FTW_SL;
    return 0;
}

static int capture(const struct audit_options *o, const char *folder)
{
    size_t size;
    char *text = sheets_capture_text(o->root, folder, &size);

    if (text == NULL) {
        return EXIT_UNREACHABLE;
    }
    free(text);
    captured = 0;
    (void)nftw(folder, count_files, 16, FTW_PHYS);
    const struct foreign_text name = foreign_text(folder);
    printf("%s: %u files and links, of this machine as foliot-inspect reads it\n"
           "addresses and names are others in it, serial numbers are not kept; the site's own "
           "programs are left out\n"
           "look through it:  grep -r . %s\njudge it:         foliot audit run --root %s\n",
           name.text, captured, name.text, name.text);
    return EXIT_WELL;
}

static int show(const struct audit_options *o, int count, char *words[])
{
    struct audit_file *file = calloc(1, sizeof(*file));
    struct audit_sheets sheets = {0};
    struct audit a = {0};
    int status = file == NULL ? EXIT_UNREACHABLE : audit_settings_of(o, file);

    for (int i = 0; i < count && status == EXIT_WELL; i++) {
        status = sheets_load(&sheets, words[i]);
    }
    if (status == EXIT_WELL) {
        status = audited(&a, &sheets, &file->settings);
    }
    if (status == EXIT_WELL) {
        status = audit_show(o, &a, &file->settings);
        audited_done(&a);
    }
    sheets_done(&sheets);
    if (file != NULL) {
        audit_file_done(file);
        free(file);
    }
    return status;
}

static int try_on_the_past(const struct audit_options *o, int count, char *words[])
{
    struct audit_file *file = calloc(1, sizeof(*file));
    int status = file == NULL ? EXIT_UNREACHABLE : audit_settings_of(o, file);

    if (status == EXIT_WELL) {
        status = audit_try(o, file, count, words);
        audit_file_done(file);
    }
    free(file);
    return status;
}

static bool fails(const struct audit *a)
{
    for (uint32_t i = 0; i < a->count; i++) {
        if (a->results[i].status == AUDIT_FAIL && a->results[i].sheet == 0) {
            return true;
        }
    }
    return false;
}

/* Reads this host, and the sheets of --facts. */
static int look(const struct audit_options *o, struct audit_sheets *sheets, struct audit *a,
                const struct audit_settings *settings)
{
    int status = sheets_inspect(sheets, o->root, o->age_s > 0 ? o->known : NULL);

    if (status == EXIT_WELL && o->facts != NULL) {
        status = sheets_load(sheets, o->facts);
    }
    return status == EXIT_WELL ? audited(a, sheets, settings) : status;
}

/* If a check fails the host is read again, a second later. */
static int look_twice(const struct audit_options *o, struct audit_sheets *sheets, struct audit *a,
                      const struct audit_settings *settings)
{
    const struct timespec pause = {.tv_sec = LOOK_AGAIN_MS / 1000};
    struct audit_sheets again = {0};
    struct audit second = {0};
    int status = look(o, sheets, a, settings);

    if (status != EXIT_WELL || !fails(a)) {
        return status;
    }
    nanosleep(&pause, NULL);
    status = look(o, &again, &second, settings);
    if (status == EXIT_WELL) {
        audit_confirm(a, &second);
        audited_done(&second);
    } else {
        audited_done(a);
    }
    sheets_done(&again);
    return status;
}

/* A host may pass by the facts that are kept. Before it is closed, it is read again. False: the kept facts don't suffice. */
static bool passes_by_known(const struct audit_options *o, const struct audit_settings *settings,
                            int *ret_status)
{
    struct audit_sheets sheets = {0};
    struct audit a = {0};
    bool passes = o->age_s > 0 && o->known != NULL && sheets_known(&sheets, o->known, o->age_s) &&
                  (o->facts == NULL || sheets_load(&sheets, o->facts) == EXIT_WELL) &&
                  audited(&a, &sheets, settings) == EXIT_WELL;

    if (passes) {
        const enum audit_status status = gate_of(&a, 0).status;
        passes = status == AUDIT_PASS || status == AUDIT_WARN;
        if (passes) {
            *ret_status = audit_gate(o, &a, 0);
        }
        audited_done(&a);
    }
    sheets_done(&sheets);
    return passes;
}

static int here(const struct audit_options *o, bool gate)
{
    struct audit_file *file = calloc(1, sizeof(*file));
    struct audit_sheets sheets = {0};
    struct audit a = {0};
    int status = file == NULL ? EXIT_UNREACHABLE : audit_settings_of(o, file);

    if (status == EXIT_WELL) {
        file->settings.rules_alone = gate && o->facts == NULL;
        if (gate && passes_by_known(o, &file->settings, &status)) {
            audit_file_done(file);
            free(file);
            return status;
        }
        status = look_twice(o, &sheets, &a, &file->settings);
    }
    if (status == EXIT_WELL) {
        status = gate ? audit_gate(o, &a, 0) : audit_show(o, &a, &file->settings);
        audited_done(&a);
    } else if (gate && status == EXIT_UNREACHABLE) { /* the reason is printed */
        status = audit_gate_exit(&(struct audit_gate_line){o->format, AUDIT_UNKNOWN, "", ""});
    }
    sheets_done(&sheets);
    if (file != NULL) {
        audit_file_done(file);
        free(file);
    }
    return status;
}

int command_audit(int argc, char *argv[])
{
    static const char *const formats[] = {"text", "json", "slurm", "nagios", "npd", NULL};
    struct audit_options o = {0};
    const struct option_entry own[] = {
        {"root", 0, OPTION_TEXT, &o.root, .expected = "a folder that stands for /"},
        {"facts", 0, OPTION_TEXT, &o.facts, .expected = "a sheet, or a folder of them"},
        {"config", 0, OPTION_TEXT, &o.config, .expected = "a file as audit.yaml"},
        {"output", 'o', OPTION_TEXT, &o.output, .expected = "a file"},
        {"format", 0, OPTION_CHOICE, &o.format, .choices = formats},
        {"junit", 0, OPTION_TEXT, &o.files.junit, .expected = "a file"},
        {"html", 0, OPTION_TEXT, &o.files.html, .expected = "a file"},
        {"age", 0, OPTION_INT, &o.age_s, 0, 86400, .expected = "seconds"},
        {"known", 0, OPTION_TEXT, &o.known, .expected = "a file for what is known of this host"},
        {"fail", 0, OPTION_TEXT, &o.fail, .expected = "a number"},
        {"warn", 0, OPTION_TEXT, &o.warn, .expected = "a number"},
        {"declared", 0, OPTION_TEXT, &o.declared, .expected = "what is declared"},
        {"json", 0, OPTION_FLAG, &o.json},
        {"markdown", 0, OPTION_FLAG, &o.markdown},
        {"man", 0, OPTION_FLAG, &o.man},
        {"all", 0, OPTION_FLAG, &o.all},
    };
    int first = 0;
    const struct command *command = command_find("audit");
    if (audit_means_fleet(argc, argv)) {
        return audit_fleet(argc, argv);
    }
    const int r = command_read(command, own, sizeof(own) / sizeof(own[0]), argc, argv, &first);

    if (r != 0) {
        return r == COMMAND_HELPED ? EXIT_WELL : r;
    }
    const int count = argc - first;
    char **words = argv + first;
    const char *word = count > 0 ? words[0] : "run";
    if (o.json) {
        o.format = 1;
    }
    if (o.known == NULL && o.root == NULL) { /* a tree belongs to another machine */
        o.known = KNOWN_USUAL;
    }
    if (strcmp(word, "show") == 0 && count >= 2) {
        return show(&o, count - 1, words + 1);
    }
    if (strcmp(word, "test") == 0 && count >= 3) {
        return try_on_the_past(&o, count - 1, words + 1);
    }
    if (strcmp(word, "explain") == 0 && count == 2) {
        return audit_explain(&o, words[1]);
    }
    if (count <= 1 && strcmp(word, "run") == 0) {
        return here(&o, false);
    }
    if (count <= 1 && strcmp(word, "gate") == 0) {
        return here(&o, true);
    }
    if (count <= 1 && strcmp(word, "facts") == 0) {
        return facts(&o);
    }
    if (count == 2 && strcmp(word, "capture") == 0) {
        return capture(&o, words[1]);
    }
    if (count <= 1 && strcmp(word, "checks") == 0) {
        return audit_checks(&o);
    }
    return command_wrong_words("audit", count, words);
}
