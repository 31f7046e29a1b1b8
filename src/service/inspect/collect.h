/* collect.h: helpers of the collectors; only service/inspect uses them.
 *
 * A file is read whole. It must be printable text, and its last line must have a line end: without one the file was cut. Any
 * other file is garbled. A folder that can't be listed is not treated as empty. */
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
/* Puts the reason why the fact has no value: the kernel's error. */
void put_error(struct collector *c, enum fact_id id, const char *subject, int error,
               const char *source);
enum fact_state state_of(int error);

/* Reads the clock that deadlines use. */
int64_t now_ms(void);

/* True for printable text of that length. */
bool is_text(const char *text, size_t size);
/* Reads the whole file, text or not, into c->text; returns its length. -ENOENT …; -EMSGSIZE: the file is longer. */
int collect_bytes(struct collector *c, const char *path);
/* Reads the file's lines into c->text; returns the length. -ENOENT …; -EBADMSG: the file is no text, or was cut. */
int collect_file(struct collector *c, const char *path);
/* The file's only line. */
int collect_line(struct collector *c, const char *path, char *ret, size_t size);
int collect_number(struct collector *c, const char *path, int64_t *ret);
/* Returns the next line of c->text, without its line end; NULL: there are no more. Start with *cursor NULL. */
char *next_line(struct collector *c, char **cursor);
/* Puts the file's line as the fact's value. */
void put_file(struct collector *c, enum fact_id id, const char *subject, const char *path);
/* Names in a folder; the caller frees them. count < 0: -errno. */
struct names *names_of(struct collector *c, const char *folder);
/* The last part of a link's target. */
int collect_link(struct collector *c, const char *path, char *ret, size_t size);

/* Files below a folder; each is a fact. */
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
bool gpu_of_amd(struct collector *c); /* whether there is a GPU of AMD's */
void collect_net(struct collector *c);
void collect_settings(struct collector *c);
void collect_modules(struct collector *c);
void collect_neighbours(struct collector *c);
void collect_rdma(struct collector *c);
void collect_routes(struct collector *c);
void collect_job(struct collector *c);
void collect_agent(struct collector *c);
void collect_tests(struct collector *c);
/* Puts the file that a library's name resolves to, searched in the usual folders. */
void put_library(struct collector *c, enum fact_id id, const char *library);
void collect_storage(struct collector *c);
void collect_mounts(struct collector *c);
void collect_site(struct collector *c);

/* The parts of files that decide about a fact; a capture keeps only these (scrub.h): a word of the kernel's command line, the
 * name of a process, the target of an open file, a line of the kernel's log. log_keep() writes the judged part of such a line. */
bool cmdline_decides(const char *word);
bool process_matters(const char *name);
bool process_has_gpu(const char *target);
bool log_matters(const char *text);
void log_keep(const char *text, FILE *out);
/* Reads the kernel's log, which may be longer than other files, in pieces of whole lines in `text` (FILE_MAX + 1 bytes).
 * `each` returns < 0 to stop. Returns 1; 0: the log is empty; < 0: an error. *ret_lost is set if the kernel overwrote lines
 * meanwhile. */
typedef int (*log_piece)(void *context, char *text);
int log_pieces(int fd, char *text, log_piece each, void *context, bool *ret_lost);
/* For a capture: keeps an answer that came from no file as a file. A reader of another root then gets the same answer, or the
 * same error. Without a capture it does nothing. */
void keep_answer(const struct collector *c, const char *path, int error, const char *text);
