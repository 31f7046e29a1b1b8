/* scrub_answer.h: what is kept of the answers that collectors got, and of results of tests; only service/inspect uses it.
 *
 * As scrub_file(): it changes `text`; -EBADMSG: the text has another format. */
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
/* The used shares of file systems. */
int scrub_used(const struct scrub *s, char *text, FILE *out);
/* Of a driver by netlink: hexadecimal digits of attributes, or "none". */
int scrub_answer(const char *question, char *text, FILE *out);

/* ---- results of tests: files of /var/lib/foliot/tests ---- */
/* Output of nccl-tests. */
int scrub_runs(const struct scrub *s, char *text, FILE *out);
/* Lines with a name and a number. */
int scrub_values(const struct scrub *s, char *text, FILE *out);
/* DCGM's diagnosis. */
int scrub_dcgm(const struct scrub *s, char *text, FILE *out);
