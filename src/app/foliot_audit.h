/* foliot_audit.h: what the parts of `foliot audit` share. */
#pragma once
#include <jansson.h>

#include "app/foliot_audit_report.h"
#include "core/audit/judge.h"
#include "service/audit/settings.h"

struct audit_options {
    const char *root, *facts, *config, *output, *host, *known;
    const char *fail, *warn, *declared; /* limits to try; NULL: as they are set */
    /* kept facts of at most this age are enough for the gate; 0: they are never enough */
    int age_s;
    unsigned format; /* of the gate */
    struct audit_files files;
    bool json, markdown, man, all;
};

/* Sheets, sorted by host. Each has its own memory. */
struct audit_sheets {
    struct sheet *all;
    uint32_t count, capacity;
    struct sheet **owned;
};
/* Loads a file, or all *.json of a folder. Returns an exit status; the error was printed. */
int sheets_load(struct audit_sheets *s, const char *path);
/* Adds a sheet that is already parsed. name: its origin, for messages. */
int sheets_add_json(struct audit_sheets *s, const json_t *tree, const char *name);
/* Reads this machine, by foliot-inspect. root: NULL, or a tree of files. file: the sheet is kept there for sheets_known(); NULL:
 * nowhere. */
int sheets_inspect(struct audit_sheets *s, const char *root, const char *file);
/* Loads a kept sheet of at most that age, if it belongs to this user and nobody else may write it. False: there is no such
 * sheet. */
bool sheets_known(struct audit_sheets *s, const char *file, int age_s);
/* The same as sheets_inspect, as unparsed text. The caller frees it. NULL: the error was printed. */
char *sheets_inspect_text(const char *root, size_t *ret_size);
/* The same. It also copies the files that were read into a new folder (service/inspect/capture.h). */
char *sheets_capture_text(const char *root, const char *folder, size_t *ret_size);
void sheets_done(struct audit_sheets *s);

/* Judges the sheets. The caller ends it by audited_done(). Returns an exit status. */
int audited(struct audit *a, const struct audit_sheets *sheets,
            const struct audit_settings *settings);
void audited_done(struct audit *a);

/* Reads the named file, or the default file if it exists. Returns an exit status; the error was printed. */
int audit_settings_of(const struct audit_options *o, struct audit_file *file);

int audit_checks(const struct audit_options *o);
int audit_explain(const struct audit_options *o, const char *id);
int audit_show(const struct audit_options *o, const struct audit *a,
               const struct audit_settings *settings);
/* The gate's line and exit status for one host, judged by `foliot audit` or by the controller. */
struct audit_gate_line {
    unsigned format;
    enum audit_status status;
    const char *host, *text;
};
void audit_gate_print(const struct audit_gate_line *g); /* in the gate's format */
int audit_gate_exit(const struct audit_gate_line *g);

/* ---- foliot_audit_try.c ---- */
/* words: a check, then files or folders of sheets. Returns an exit status. */
int audit_try(const struct audit_options *o, struct audit_file *file, int count, char *words[]);
/* The same for audits since since_ns, if the controller still keeps their sheets. */
struct api;
int audit_try_fleet(struct api *api, const struct audit_options *o, int64_t since_ns,
                    const char *check);

/* ---- foliot_audit_text.c: results in their JSON form (service/audit/result_json.h) ---- */
/* Prints the results of one status. Equal results are one block. *room: how many blocks may still be printed. */
void audit_print_blocks(const json_t *results, const char *status, int *room);
void audit_print_unknown(const json_t *results);
/* Prints the hosts whose `gate` is closed. */
void audit_print_closed(const json_t *hosts);

/* ---- foliot_audit_tests.c ---- */
void audit_print_tests(const json_t *tests); /* "tests" of a run */

/* ---- foliot_audit_run.c: an audit of the fleet, for people ---- */
int audit_print_run(struct api *api, json_t *run);
/* The hosts of a run that were not read. A controller of an older release calls them left_out. */
json_t *audit_not_read(const json_t *run);
/* Prints a line for a stopped run: how much of it was done. Prints nothing for other runs. */
void audit_print_covered(const json_t *run);
/* Returns 1 if something differs. With --json it prints the answer unchanged. */
int audit_print_diff(struct api *api, const char *was, const char *is);

/* ---- foliot_audit_fleet.c: through the controller ---- */
bool audit_means_fleet(int argc, char *argv[]);
int audit_fleet(int argc, char *argv[]);

int audit_gate(const struct audit_options *o, const struct audit *a, uint32_t sheet);
