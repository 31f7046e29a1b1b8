/* fact.h: facts: what was read of one machine. A fact is a value, or the reason why there is none: "the file doesn't exist" and
 * "no permission to read the file" are different facts.
 *
 * A value is text as it was found. Each fact has a form (below). Text of another form is not a value: the fact is then `garbled`,
 * and nothing is judged by it. A sheet is all facts of one host. Its owner provides the memory. Facts that don't fit are counted
 * in `left_out`; in a sheet that left something out, nothing is judged as present or as missing. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/audit/facts.h"

enum fact_state {
    FACT_VALUE,
    FACT_ABSENT,        /* the folder was read, and the file is not in it */
    FACT_NO_PERMISSION, /* this process has no permission */
    FACT_UNREADABLE,    /* the kernel answered with an error */
    FACT_GARBLED,       /* it was read, but has the wrong form; `value` has the text */
    FACT_TIMEOUT,       /* its reader did not answer in time */
    FACT_STUCK,         /* an earlier reader still hangs in the kernel: no new one was started */
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

/* How a fact is kept, and whether its change is an event (core/audit/part.h). */
enum fact_keep {
    KEEP_KEPT, /* the same with each look until somebody changes the machine: a change is an event */
    KEEP_OWN,  /* the same as KEEP_KEPT, but it identifies this machine */
    KEEP_NOW   /* differs with each look: counters, temperatures, measurements */
};

/* The form of a value. */
enum fact_form {
    FORM_NUMBER,  /* decimal, of at most 18 digits, with an optional minus */
    FORM_HEX,     /* 0x15b3, of at most 15 digits: 60 bits */
    FORM_WORD,    /* letters, digits, and . _ + - : ~ / @ */
    FORM_TEXT,    /* one line of printable characters; "" is a value */
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
    const char *value;   /* FACT_VALUE: the text. Else "", or more about the reason */
    const char *source;  /* the file or the question that it came from */
    uint32_t order;      /* only for sheet_finish: the order in which facts were added */
    const char *peer;    /* for an edge or a lane, "eth0 HOST eth1": the other host; else NULL */
};

enum {
    SHEET_FACTS_MAX = 8192,
    SHEET_TEXT_MAX = 1 << 20,
    FACT_VALUE_MAX = 1024,
    FACT_SUBJECT_MAX = 256
};

/* Counters are compared with those of an older sheet: the oldest sheet of the last day, if it is at least an hour older (a daily
 * audit may begin some minutes earlier or later). Else it is the newest one before. */
#define PAST_LEAST_NS INT64_C(3600000000000)
#define PAST_DAY_NS   (25 * PAST_LEAST_NS)

struct sheet {
    const char *host;
    int64_t at_utc_ns;    /* when it was read */
    int64_t own_since_ns; /* since when it has had its machine id and GUIDs; 0: not known */
    /* enum audit_reason: why there is no sheet of this host; 0: there is one */
    uint8_t missing;
    const char *missing_note;
    struct fact *facts;
    uint32_t count, capacity, left_out;
    uint32_t first[FACT_COUNT + 1]; /* by sheet_finish: where the facts of each id begin */
    char *text;
    size_t text_used, text_size;
    /* Earlier sheets of the same host (core/audit/past.h); NULL: not known. */
    const struct sheet *was;      /* counters of a day before */
    const struct sheet *accepted; /* measurements of the audit that a person accepted */
    /* in an accepted sheet: which audit it is from, as text; else NULL */
    const char *run;
};

const char *fact_name(enum fact_id id);
const char *fact_what(enum fact_id id); /* one line of text for people */
enum fact_section fact_section(enum fact_id id);
enum fact_keep fact_keep(enum fact_id id);
/* True for facts that a controller adds to a host's sheet, from what others measured or from the past. The host must not report
 * them. */
bool fact_is_of_controller(enum fact_id id);
/* Facts of an earlier sheet that are kept beside the present one (past.h): counters, and measurements. */
bool fact_is_counter(enum fact_id id);
bool fact_is_measured(enum fact_id id);
const char *fact_section_name(enum fact_section section);
const char *fact_state_name(enum fact_state state);
/* FACT_COUNT, FACT_STATE_COUNT: there is no such name. */
enum fact_id fact_by_name(const char *name);
enum fact_state fact_state_by_name(const char *name);

bool fact_fits(enum fact_id id, const char *text);
/* Accepts a whole decimal number, or 0x…. */
bool fact_number(const char *text, int64_t *ret_number);

/* Copies the texts into the sheet. A value of the wrong form is kept as garbled. */
void sheet_add(struct sheet *s, const struct fact *fact);
/* Copies text into the sheet's memory; returns "" if it doesn't fit. */
const char *sheet_keep(struct sheet *s, const char *text);
/* Sorts the facts for searching. Of two facts with the same id and subject, the first one added is kept. */
void sheet_finish(struct sheet *s);
/* NULL: there is no such fact. */
const struct fact *sheet_find(const struct sheet *s, enum fact_id id, const char *subject);
/* All facts of an id follow one another. Returns the first one (NULL: none), and their number. */
const struct fact *sheet_first(const struct sheet *s, enum fact_id id, uint32_t *ret_count);
