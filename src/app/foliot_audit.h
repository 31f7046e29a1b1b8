/* foliot_audit.h: what the parts of `foliot audit` share. */
#pragma once
#include <jansson.h>

#include "app/foliot_audit_report.h"
#include "core/audit/judge.h"
#include "service/audit/settings.h"

struct audit_options {
    const char *root, *facts, *config, *output, *host, *known;
    const char *fail, *warn, *declared; /* that are tried; NULL: as they are */
    int age_s;       /* of known facts that are enough for the gate; 0: none are */
    unsigned format; /* of the gate */
    struct audit_files files;
    bool json, markdown, man, all;
};

/* Sheets, by host; each in memory of its own. */
struct audit_sheets {
    struct sheet *all;
    uint32_t count, capacity;
    struct sheet **owned;
};
/* A file, or all *.json of a folder. An exit status; what is wrong is printed. */
int sheets_load(struct audit_sheets *s, const char *path);
/* One that is there as JSON. name: of where it comes from, for people. */
int sheets_add_json(struct audit_sheets *s, const json_t *tree, const char *name);
/* This machine, by foliot-inspect; root: NULL, or a tree. The sheet is kept in the file for sheets_known(); NULL: in none. */
int sheets_inspect(struct audit_sheets *s, const char *root, const char *file);
/* A sheet that was kept, of at most that age, by this user and nobody else's to write. False: there is none. */
bool sheets_known(struct audit_sheets *s, const char *file, int age_s);
/* The same, as it came; the caller frees. NULL: what is wrong was printed. */
char *sheets_inspect_text(const char *root, size_t *ret_size);
/* The same, and what was read as a tree of files in a new folder (service/inspect/capture.h). */
char *sheets_capture_text(const char *root, const char *folder, size_t *ret_size);
void sheets_done(struct audit_sheets *s);

/* Judged; must be ended with audited_done. An exit status. */
int audited(struct audit *a, const struct audit_sheets *sheets,
            const struct audit_settings *settings);
void audited_done(struct audit *a);

/* The file that is named, or the usual one where it is there. An exit status; what is wrong is printed. */
int audit_settings_of(const struct audit_options *o, struct audit_file *file);

int audit_checks(const struct audit_options *o);
int audit_explain(const struct audit_options *o, const char *id);
int audit_show(const struct audit_options *o, const struct audit *a,
               const struct audit_settings *settings);
/* The gate's one line and exit status, of a host that `foliot audit` or the controller has judged. */
struct audit_gate_line {
    unsigned format;
    enum audit_status status;
    const char *host, *text;
};
void audit_gate_print(const struct audit_gate_line *g); /* as text, or as Nagios reads it */
int audit_gate_exit(const struct audit_gate_line *g);

/* ---- foliot_audit_try.c ---- */
/* words: a check, and files or folders of sheets. An exit status. */
int audit_try(const struct audit_options *o, struct audit_file *file, int count, char *words[]);
/* Of audits since then whose sheets the controller keeps. */
struct api;
int audit_try_fleet(struct api *api, const struct audit_options *o, int64_t since_ns,
                    const char *check);

/* ---- foliot_audit_text.c: results as JSON has them (service/audit/result_json.h) ---- */
/* Those of a status, alike ones as one block; *room: how many blocks are shown. */
void audit_print_blocks(const json_t *results, const char *status, int *room);
void audit_print_unknown(const json_t *results);
/* Hosts whose gate is closed, by `gate` of each. */
void audit_print_closed(const json_t *hosts);

/* ---- foliot_audit_tests.c ---- */
void audit_print_tests(const json_t *tests); /* "tests" of a run */

/* ---- foliot_audit_run.c: an audit of the fleet, for people ---- */
int audit_print_run(struct api *api, json_t *run);
/* Its hosts that were not read; a controller of an older release calls them left_out. */
json_t *audit_not_read(const json_t *run);
/* How far a run came that was stopped: a line; of another one nothing. */
void audit_print_covered(const json_t *run);
/* 1: something is another. With --json as it came. */
int audit_print_diff(struct api *api, const char *was, const char *is);

/* ---- foliot_audit_fleet.c: through the controller ---- */
bool audit_means_fleet(int argc, char *argv[]);
int audit_fleet(int argc, char *argv[]);

int audit_gate(const struct audit_options *o, const struct audit *a, uint32_t sheet);
