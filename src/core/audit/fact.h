/* fact.h: facts: what was read of one machine. A fact is a value, or the reason why there is none: a file that is not there is
 * another fact than a file that is not for us.
 *
 * A value is text as it was found, and each fact has a form (below). Text of another form is no value: the fact is then
 * `garbled`, and nothing is judged by it. A sheet is all facts of one host. It lives in memory that its owner gives; what
 * doesn't fit is counted in `left_out`, and a sheet that left something out judges nothing as there or as missing. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/audit/facts.h"

enum fact_state {
    FACT_VALUE,
    FACT_ABSENT,        /* the folder that would hold it was read, and it is not in there */
    FACT_NO_PERMISSION, /* not for this process */
    FACT_UNREADABLE,    /* the kernel answered with an error */
    FACT_GARBLED,       /* it was read, and is not what it should look like; `value` has the text */
    FACT_TIMEOUT,       /* its reader did not answer in time */
    FACT_STUCK,         /* an earlier reader still hangs in the kernel: none was started */
    FACT_STATE_COUNT
};

enum fact_section {
    SECTION_OS,
    SECTION_CPU,
    SECTION_MEMORY,
    SECTION_PCIE,
    SECTION_GPU,
    SECTION_NIC,
    SECTION_RDMA,
    SECTION_STORAGE,
    SECTION_TIME,
    SECTION_JOB,
    SECTION_COUNT
};

/* With what a fact is kept, and whether its change is told (core/audit/part.h). */
enum fact_keep {
    KEEP_KEPT, /* the same with each look until somebody changes the machine: a change is an event */
    KEEP_OWN,  /* the same, and of this machine alone */
    KEEP_NOW   /* another one with each look: counters, temperatures, what was measured */
};

/* What a value looks like. */
enum fact_form {
    FORM_NUMBER,  /* decimal, of 18 digits at most, a minus before it */
    FORM_HEX,     /* 0x15b3, of 15 digits at most: 60 bits */
    FORM_WORD,    /* letters, digits, and . _ + - : ~ / @ */
    FORM_TEXT,    /* one line that can be seen; "" is a value */
    FORM_STATE,   /* "4: ACTIVE" */
    FORM_RATE,    /* "400 Gb/sec (4X NDR)" */
    FORM_TRANSFER /* "32.0 GT/s PCIe" */
};

enum fact_id {
#define FACT(id, section, keep, form, name, what) FACT_##id,
    AUDIT_FACTS(FACT)
#undef FACT
        FACT_COUNT
};

struct fact {
    uint16_t id;         /* enum fact_id */
    uint8_t state;       /* enum fact_state */
    const char *subject; /* "": the host; else a device, a port ("mlx5_0/1"), an interface, … */
    const char *value;   /* FACT_VALUE: the text. Else "" or what is known of the reason */
    const char *source;  /* the file, or what was asked */
    uint32_t order;      /* of sheet_finish alone: as it was added */
    const char *peer;    /* of an edge or lane, "eth0 HOST eth1": the other host; else NULL */
};

enum {
    SHEET_FACTS_MAX = 8192,
    SHEET_TEXT_MAX = 1 << 20,
    FACT_VALUE_MAX = 1024,
    FACT_SUBJECT_MAX = 256
};

/* Counters are compared with those of a sheet that is at least an hour older: the oldest of the last day, for an audit a day
 * begins some minutes earlier or later; else the newest one before. */
#define PAST_LEAST_NS INT64_C(3600000000000)
#define PAST_DAY_NS   (25 * PAST_LEAST_NS)

struct sheet {
    const char *host;
    int64_t at_utc_ns;    /* when it was read */
    int64_t own_since_ns; /* since when it has its machine id and GUIDs; 0: not known */
    uint8_t missing;      /* enum audit_reason: why there is no sheet of this host; 0: this is it */
    const char *missing_note;
    struct fact *facts;
    uint32_t count, capacity, left_out;
    uint32_t first[FACT_COUNT + 1]; /* of sheet_finish: where each id's facts begin */
    char *text;
    size_t text_used, text_size;
    /* Of the same host, beside this sheet (core/audit/past.h); NULL: not known. */
    const struct sheet *was;      /* counters, a day before */
    const struct sheet *accepted; /* what was measured when a person accepted an audit */
    const char *run;              /* of an accepted one: which audit, for people; else NULL */
};

const char *fact_name(enum fact_id id);
const char *fact_what(enum fact_id id); /* one line for people */
enum fact_section fact_section(enum fact_id id);
enum fact_keep fact_keep(enum fact_id id);
/* What a controller puts beside a host's sheet: by what others measured, or by what was. It is not for the host to tell. */
bool fact_is_of_controller(enum fact_id id);
/* Of an earlier sheet these are worth keeping beside the one of now (past.h): what only grows; what is measured. */
bool fact_is_counter(enum fact_id id);
bool fact_is_measured(enum fact_id id);
const char *fact_section_name(enum fact_section section);
const char *fact_state_name(enum fact_state state);
/* FACT_COUNT, FACT_STATE_COUNT: no such name. */
enum fact_id fact_by_name(const char *name);
enum fact_state fact_state_by_name(const char *name);

bool fact_fits(enum fact_id id, const char *text);
/* A whole decimal number, or 0x… one. */
bool fact_number(const char *text, int64_t *ret_number);

/* Copies its texts into the sheet. A value of another form than the fact's is kept as garbled. */
void sheet_add(struct sheet *s, const struct fact *fact);
/* Keeps text in the sheet's memory; "" where it doesn't fit. */
const char *sheet_keep(struct sheet *s, const char *text);
/* Orders the facts, so that they are found; of two with one id and subject the first added is kept. */
void sheet_finish(struct sheet *s);
/* NULL: there is none. */
const struct fact *sheet_find(const struct sheet *s, enum fact_id id, const char *subject);
/* All facts of an id are one behind the other: the first (NULL: none), and how many. */
const struct fact *sheet_first(const struct sheet *s, enum fact_id id, uint32_t *ret_count);
