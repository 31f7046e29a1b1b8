/* scrub_answer.h: what stays of answers that collectors were given, and of results of tests; of service/inspect alone.
 *
 * As scrub_file(): `text` is changed; -EBADMSG: it is not what it should look like. */
#pragma once
#include "service/inspect/scrub.h"

/* The next line of `text`; NULL: there is none. */
char *scrub_line(char **text);

/* ---- answers: files of /answers ---- */
/* Of NVIDIA's library: nvml. */
int scrub_library(const struct scrub *s, char *text, FILE *out);
/* Of this host's agent: JSON, or "silent". */
int scrub_agent(const struct scrub *s, char *text, FILE *out);
/* Of the baseboard controller: requests and replies in hexadecimal digits. */
int scrub_controller(const struct scrub *s, char *text, FILE *out);
/* How full file systems are. */
int scrub_used(const struct scrub *s, char *text, FILE *out);
/* Of a driver by netlink: hexadecimal digits of attributes, or "none". */
int scrub_answer(const char *question, char *text, FILE *out);

/* ---- results of tests: files of /var/lib/foliot/tests ---- */
/* Output of nccl-tests. */
int scrub_runs(const struct scrub *s, char *text, FILE *out);
/* A name and a number a line. */
int scrub_values(const struct scrub *s, char *text, FILE *out);
/* DCGM's diagnosis. */
int scrub_dcgm(const struct scrub *s, char *text, FILE *out);
