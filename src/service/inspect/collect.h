/* collect.h: what collectors are made of; of service/inspect alone.
 *
 * A file is read whole. It is text that can be seen, and its last line has an end: without one it was cut. Else it is garbled.
 * A folder that can't be listed is not an empty one. */
#pragma once
#include <stdio.h>

#include "service/inspect/inspect.h"

enum { NAMES_MAX = 4096, FILE_MAX = 1 << 20, LOG_MAX = 64 << 20 };

struct collector {
    const struct sysfs *tree;
    struct sheet *sheet;
    const struct inspect_config *config;
    char text[FILE_MAX + 1]; /* the file that was read last */
};

/* Names of a folder. count < 0: -errno. */
struct names {
    int count;
    char name[NAMES_MAX][SYSFS_NAME_SIZE];
};

void put(struct collector *c, enum fact_id id, const char *subject, const char *value,
         const char *source);
void put_number(struct collector *c, enum fact_id id, const char *subject, int64_t value,
                const char *source);
/* Why there is none: what the kernel answered. */
void put_error(struct collector *c, enum fact_id id, const char *subject, int error,
               const char *source);
enum fact_state state_of(int error);

/* Of the clock that deadlines are told by. */
int64_t now_ms(void);

/* Text that can be seen, of that length. */
bool is_text(const char *text, size_t size);
/* What the file has, whatever it is, in c->text; its length. -ENOENT …; -EMSGSIZE: there is more. */
int collect_bytes(struct collector *c, const char *path);
/* The file's lines, in c->text; its length. -ENOENT …; -EBADMSG: it is no text, or was cut. */
int collect_file(struct collector *c, const char *path);
/* The file's only line. */
int collect_line(struct collector *c, const char *path, char *ret, size_t size);
int collect_number(struct collector *c, const char *path, int64_t *ret);
/* Line after line of c->text, without its end; NULL: no more. Start with *cursor NULL. */
char *next_line(struct collector *c, char **cursor);
/* The file as the fact's value. */
void put_file(struct collector *c, enum fact_id id, const char *subject, const char *path);
/* Names of a folder; must be freed. count < 0: -errno. */
struct names *names_of(struct collector *c, const char *folder);
/* What a link leads to: the last part of its path. */
int collect_link(struct collector *c, const char *path, char *ret, size_t size);

/* Files below a folder, each a fact. */
struct attribute {
    uint16_t id;
    const char *file;
};
void put_attributes(struct collector *c, const struct attribute *attributes, size_t count,
                    const char *subject, const char *folder);

void collect_host(struct collector *c);
void collect_log(struct collector *c);
void collect_processes(struct collector *c);
void collect_sensors(struct collector *c);
void collect_bmc(struct collector *c);
void collect_cpu(struct collector *c);
void collect_memory(struct collector *c);
void collect_pci(struct collector *c);
void collect_gpu(struct collector *c);
void collect_gpu_library(struct collector *c);
bool gpu_of_amd(struct collector *c); /* there is one */
void collect_net(struct collector *c);
void collect_settings(struct collector *c);
void collect_modules(struct collector *c);
void collect_neighbours(struct collector *c);
void collect_rdma(struct collector *c);
void collect_routes(struct collector *c);
void collect_job(struct collector *c);
void collect_agent(struct collector *c);
void collect_tests(struct collector *c);
/* The file that a library's name leads to, in the usual folders. */
void put_library(struct collector *c, enum fact_id id, const char *library);
void collect_storage(struct collector *c);
void collect_mounts(struct collector *c);
void collect_site(struct collector *c);

/* What decides about a fact, for who keeps that alone (scrub.h): a word of the kernel's command line, a process by its name, the
 * target of an open file, a line of the kernel's log; log_keep writes of such a line what is judged. */
bool cmdline_decides(const char *word);
bool process_matters(const char *name);
bool process_has_gpu(const char *target);
bool log_matters(const char *text);
void log_keep(const char *text, FILE *out);
/* The kernel's log, which is longer than other files may be, by pieces of whole lines in `text` (FILE_MAX + 1 bytes); each
 * returns < 0 to end it. 1; 0: it is empty; < 0. ret_lost is set where the kernel overwrote lines meanwhile. */
typedef int (*log_piece)(void *context, char *text);
int log_pieces(int fd, char *text, log_piece each, void *context, bool *ret_lost);
/* For a capture: what was answered without a file, as the file of another root that would answer so, or refuse
 * with that error. Else nothing. */
void keep_answer(const struct collector *c, const char *path, int error, const char *text);
