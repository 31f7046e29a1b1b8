/* audit_trials.c: tens of thousands of trials with sources of facts that are absent, unreadable, garbled or cut: audit_trials
 * ROOT PEERS TRIALS SEED.
 *
 * ROOT is a tree of test/audit/machines. PEERS is a folder of sheets of the same kind. Each trial spoils one file that results
 * depend on, reads and judges the tree, and puts the file back. Every result that depended on the file must be unknown, a
 * skip, or gone with its subject. No other result may newly fail or warn. Prints one line of JSON. */
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <ftw.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/prng.h"
#include "core/audit/judge.h"
#include "core/audit/rule.h"
#include "service/audit/sheet_json.h"
#include "service/inspect/inspect.h"

enum { FILES_MAX = 4096, PEERS_MAX = 64, RESULTS_MAX = 32768, CONTENT_MAX = 1 << 16 };

enum spoil { ABSENT, UNREADABLE, GARBLED, CUT, EMPTY, LONG, SPOIL_COUNT };
static const char *const spoils[] = {"absent", "unreadable", "garbled", "cut", "empty", "too long"};

static char root[PATH_MAX], files[FILES_MAX][256];
static int file_count;
static struct sheet sheets[PEERS_MAX + 1];
static struct audit healthy, spoiled;
static struct sysfs tree;

static void fail(const char *what)
{
    fprintf(stderr, "audit_trials: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void prepare(struct audit *a, uint32_t sheet_count)
{
    *a = (struct audit){.sheets = sheets,
                        .sheet_count = sheet_count,
                        .settings = &audit_usual,
                        .capacity = RESULTS_MAX,
                        .item_capacity = RESULTS_MAX,
                        .mention_capacity = RESULTS_MAX,
                        .text_size = 8 << 20};
    a->results = malloc(a->capacity * sizeof(*a->results));
    a->items = malloc(a->item_capacity * audit_item_size());
    a->mentions = malloc(a->mention_capacity * sizeof(*a->mentions));
    a->text = malloc(a->text_size);
    if (a->results == NULL || a->items == NULL || a->mentions == NULL || a->text == NULL) {
        fail("memory");
    }
}

static uint32_t load_peers(const char *folder)
{
    uint32_t count = 1;
    char path[PATH_MAX];

    for (int i = 2; count <= PEERS_MAX; i++) {
        const char *why = "";
        snprintf(path, sizeof(path), "%s/h%d.json", folder, i);
        json_t *json = json_load_file(path, 0, NULL);
        struct sheet *sheet = json != NULL ? sheet_new() : NULL;
        if (sheet == NULL || sheet_read(json, sheet, &why) < 0) {
            json_decref(json);
            break;
        }
        sheets[count++] = *sheet;
        json_decref(json);
    }
    return count;
}

/* True if the fact comes from this file. Its source may have patterns and links. */
static bool comes_from(const struct fact *fact, const char *file)
{
    char real[PATH_MAX];
    const char *name = strrchr(file, '/');

    if (name == NULL || strrchr(fact->source, '/') == NULL ||
        fnmatch(strrchr(fact->source, '/'), name, 0) != 0) {
        return false; /* a link; its name is the fact */
    }
    return fnmatch(fact->source, file, 0) == 0 ||
           (sysfs_real(&tree, fact->source, real, sizeof(real)) >= 0 && strcmp(real, file) == 0);
}

static bool rests_on(const struct audit_result *r, const char *file)
{
    for (int i = 0; i < r->fact_count; i++) {
        if (comes_from(r->facts[i], file)) {
            return true;
        }
    }
    return false;
}

static int note_file(const char *path, const struct stat *status, int kind, struct FTW *at)
{
    (void)status, (void)at;
    if (kind == FTW_F && file_count < FILES_MAX) {
        snprintf(files[file_count], sizeof(files[0]), "%s", path + strlen(root));
        bool used = false;
        for (uint32_t i = 0; i < healthy.count && !used; i++) {
            used =
                healthy.results[i].sheet == 0 && rests_on(&healthy.results[i], files[file_count]);
        }
        file_count += used;
    }
    return 0;
}

/* ---- one file ---- */

static size_t load(const char *path, char *text)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, text, CONTENT_MAX);

    if (n < 0) {
        fail(path);
    }
    close(fd);
    return (size_t)n;
}

static void save(const char *path, const char *text, size_t size)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    if (fd < 0 || write(fd, text, size) != (ssize_t)size || close(fd) < 0) {
        fail(path);
    }
}

/* Overwrites bytes, some of them with bytes that no text has. */
static void garble(struct prng *p, char *text, size_t size)
{
    const size_t from = prng_below(p, size), count = 1 + prng_below(p, size - from);

    for (size_t i = from; i < from + count; i++) {
        text[i] = (char)prng_u64(p);
    }
    text[from] = (char)(prng_below(p, 2) == 0 ? 1 + prng_below(p, 8) : 0xf8 + prng_below(p, 8));
}

/* False: this file can't be spoiled in this way. */
static bool spoil(struct prng *p, const char *path, enum spoil how, const char *text, size_t size)
{
    static char other[2 << 20];
    const bool binary = size >= 256 && memchr(text, 0, size) != NULL;

    memcpy(other, text, size);
    if (unlink(path) < 0) {
        fail(path);
    }
    switch (how) {
    case ABSENT:
        return true;
    case UNREADABLE: /* a folder takes its place: read() fails */
        return mkdir(path, 0755) == 0;
    case GARBLED:
        if (binary) { /* all of it is garbled: a changed bit of a register would be a value */
            for (size_t i = 0; i < size; i++) {
                other[i] = (char)prng_u64(p);
            }
        } else {
            garble(p, other, size);
        }
        save(path, other, size);
        return true;
    case CUT: { /* within a line: a cut at a line's end would not be noticed */
        size_t at = 1 + prng_below(p, size - 1);
        while (at > 0 && other[at - 1] == '\n') {
            at--;
        }
        save(path, other, at);
        return at > 0;
    }
    case EMPTY:
        save(path, "", 0);
        return true;
    case LONG:
        memset(other, 'x', sizeof(other) - 1);
        other[sizeof(other) - 1] = '\n';
        save(path, other, sizeof(other));
        return true;
    case SPOIL_COUNT:
        break;
    }
    return false;
}

static void mend(const char *path, const char *text, size_t size)
{
    if (unlink(path) < 0 && errno == EISDIR && rmdir(path) < 0) {
        fail(path);
    }
    save(path, text, size);
}

/* ---- results after a trial ---- */

static const struct audit_result *same(const struct audit *a, const struct audit_result *r)
{
    for (uint32_t i = 0; i < a->count; i++) {
        const struct audit_result *s = &a->results[i];
        if (s->check == r->check && s->sheet == r->sheet && strcmp(s->subject, r->subject) == 0) {
            return s;
        }
    }
    return NULL;
}

static int tell(const char *file, enum spoil how, const struct audit_result *r)
{
    fprintf(stderr, "%s %s: %s %s %s is %s: %s\n", file, spoils[how], sheets[r->sheet].host,
            r->check->id, r->subject, audit_status_name(r->status), r->found);
    return 1;
}

static int count_wrong(const char *file, enum spoil how, int *checked)
{
    int wrong = 0;

    for (uint32_t i = 0; i < healthy.count; i++) {
        const struct audit_result *r = &healthy.results[i];
        if (r->sheet == 0 && rests_on(r, file)) {
            const struct audit_result *now = same(&spoiled, r);
            ++*checked;
            if (now != NULL && now->status != AUDIT_UNKNOWN && now->status != AUDIT_SKIP) {
                wrong += tell(file, how, now);
            }
        }
    }
    for (uint32_t i = 0; i < spoiled.count; i++) {
        const struct audit_result *r = &spoiled.results[i];
        if (r->status == AUDIT_FAIL || r->status == AUDIT_WARN) {
            wrong += tell(file, how, r);
        }
    }
    return wrong;
}

static int trial(struct prng *p, int *checked)
{
    static char text[CONTENT_MAX];
    const char *file = files[prng_below(p, (uint64_t)file_count)];
    const enum spoil how = (enum spoil)prng_below(p, SPOIL_COUNT);
    char path[PATH_MAX + 256];
    int wrong = 0;

    snprintf(path, sizeof(path), "%s%s", root, file);
    const size_t size = load(path, text);
    if (size < 2) {
        return 0;
    }
    if (spoil(p, path, how, text, size)) {
        inspect_here(&tree, &sheets[0]);
        if (audit_judge(&spoiled) < 0) {
            fail("judging");
        }
        /* the texts of healthy results are in their own sheet */
        wrong = count_wrong(file, how, checked);
    }
    mend(path, text, size);
    return wrong;
}

int main(int argc, char *argv[])
{
    struct sheet *own = sheet_new(), *first = sheet_new();
    int wrong = 0, checked = 0;
    int64_t trials, seed;
    struct prng p;

    if (argc != 5 || !fact_number(argv[3], &trials) || !fact_number(argv[4], &seed) ||
        own == NULL || first == NULL || sysfs_open(&tree, argv[1]) < 0) {
        fputs("usage: audit_trials ROOT PEERS TRIALS SEED\n", stderr);
        return 2;
    }
    snprintf(root, sizeof(root), "%s", argv[1]);
    prng_init(&p, (uint64_t)seed);
    inspect_here(&tree, first);
    sheets[0] = *first;
    const uint32_t count = load_peers(argv[2]);
    prepare(&healthy, count);
    prepare(&spoiled, count);
    if (audit_judge(&healthy) < 0) {
        fail("judging");
    }
    if (nftw(root, note_file, 16, FTW_PHYS) != 0 || file_count == 0) {
        fail(root);
    }
    sheets[0] = *own;
    for (int64_t i = 0; i < trials; i++) {
        wrong += trial(&p, &checked);
    }
    printf("{\"trials\": %lld, \"files\": %d, \"results\": %d, \"wrong\": %d}\n", (long long)trials,
           file_count, checked, wrong);
    return 0;
}
