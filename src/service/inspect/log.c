/* log.c: the kernel log: /dev/kmsg returns one record for each read; below another root it is a file of records. Format:
 * Documentation/ABI/testing/dev-kmsg. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bug.h"
#include "base/plain.h"
#include "service/inspect/collect.h"

#define PATH "/dev/kmsg"

struct kind {
    uint16_t id;
    const char *with; /* the line must also have this; NULL: nothing */
    const char *what;
};
static const struct kind kinds[] = {
    {FACT_OS_LOG_LOCKUP, NULL, "soft lockup"},
    {FACT_OS_LOG_LOCKUP, NULL, "hard LOCKUP"},
    {FACT_OS_LOG_LOCKUP, "blocked for more than", "INFO: task "},
    {FACT_OS_LOG_LOCKUP, NULL, "self-detected stall"},
    {FACT_OS_LOG_LOCKUP, NULL, "detected stalls on CPUs"},
    {FACT_OS_LOG_MCE, NULL, "[Hardware Error]"},
    {FACT_OS_LOG_MCE, NULL, "Machine check events logged"},
    {FACT_OS_LOG_NIC, NULL, "NETDEV WATCHDOG"},
    {FACT_OS_LOG_NIC, "mlx5_core", "health compromised"},
    {FACT_OS_LOG_NIC, "mlx5_core", "timeout. Will cause a leak"},
    {FACT_OS_LOG_NIC, "mlx5_core", "firmware internal error"},
    {FACT_OS_LOG_NIC, "bnxt_en", "Firmware not responding"},
    {FACT_OS_LOG_POWER, NULL, "insufficient power on the PCIe slot"},
};

struct log {
    int64_t lines, lost, counts[FACT_COUNT];
    char xids[256];
    int error;
};

/* "NVRM: Xid (PCI:0000:3b:00): 79, pid=…" */
static void note_xid(struct log *log, const char *text)
{
    const char *at = strstr(text, "NVRM: Xid (");
    char word[24];
    unsigned code;
    int end = 0;

    at = at != NULL ? strstr(at, "): ") : NULL;
    if (at == NULL || sscanf(at, "): %u%n", &code, &end) != 1 || code > 9999) {
        return;
    }
    snprintf(word, sizeof(word), " %u ", code);
    if (strstr(log->xids, word) == NULL && strlen(log->xids) + 8 < sizeof(log->xids)) {
        strncat(log->xids, log->xids[0] == '\0' ? word : word + 1,
                sizeof(log->xids) - strlen(log->xids) - 1);
    }
}

static const struct kind *kind_of(const char *text)
{
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) {
        if (strstr(text, kinds[i].what) != NULL &&
            (kinds[i].with == NULL || strstr(text, kinds[i].with) != NULL)) {
            return &kinds[i];
        }
    }
    return NULL;
}

bool log_matters(const char *text)
{
    return kind_of(text) != NULL || strstr(text, "NVRM: Xid (") != NULL;
}

void log_keep(const char *text, FILE *out)
{
    const struct kind *kind = kind_of(text);
    char address[32];
    unsigned code;
    const char *xid = strstr(text, "NVRM: Xid (");

    if (kind != NULL) {
        fprintf(out, "%s%s%s", kind->what, kind->with != NULL ? " " : "",
                kind->with != NULL ? kind->with : "");
    }
    if (xid != NULL && sscanf(xid, "NVRM: Xid (PCI:%31[0-9a-f:.]): %u", address, &code) == 2) {
        fprintf(out, "NVRM: Xid (PCI:%s): %u", address, code);
    }
}

/* A record is "6,339,5140900,-;text". The following lines that begin with a blank belong to it. */
static void note(struct log *log, const char *line)
{
    unsigned level;
    unsigned long long number;
    const char *text = strchr(line, ';');

    if (line[0] == ' ') {
        return;
    }
    if (text == NULL || sscanf(line, "%u,%llu,", &level, &number) != 2) {
        log->error = -EBADMSG;
        return;
    }
    log->lost = log->lines == 0 ? number > 0 : log->lost;
    log->lines++;
    const struct kind *kind = kind_of(text);
    if (kind != NULL) {
        log->counts[kind->id]++;
    }
    note_xid(log, text);
}

/* A record may have several lines. */
static void note_record(struct log *log, char *record)
{
    for (char *line; (line = strsep(&record, "\n")) != NULL;) {
        if (line[0] != '\0') {
            note(log, line);
        }
    }
}

int log_pieces(int fd, char *text, log_piece each, void *context, bool *ret_lost)
{
    enum { RECORD_MAX = 8192 }; /* the longest record of /dev/kmsg; a read with less room fails */
    size_t size = 0, all = 0;

    for (ssize_t n = 1; n != 0;) {
        n = read(fd, text + size, FILE_MAX - size);
        if (n < 0 && (errno == EINTR || errno == EPIPE)) {
            *ret_lost = *ret_lost || errno == EPIPE; /* the kernel overwrote records meanwhile */
            continue;
        }
        if (n < 0 && errno != EAGAIN) {
            return -errno;
        }
        n = n < 0 ? 0 : n;
        size += (size_t)n;
        all += (size_t)n;
        if (all > LOG_MAX) {
            return -EMSGSIZE;
        }
        if (n > 0 && size + RECORD_MAX <= FILE_MAX) {
            continue;
        }
        const char *last = memrchr(text, '\n', size);
        const size_t whole = last != NULL ? (size_t)(last - text) + 1 : 0;
        if (size > 0 && (whole == 0 || (n == 0 && whole != size))) {
            return -EBADMSG;
        }
        char kept[RECORD_MAX]; /* the incomplete line at the end */
        if (size - whole > sizeof(kept)) {
            return -EBADMSG;
        }
        memcpy(kept, text + whole, size - whole);
        text[whole] = '\0';
        const int r = whole == 0                       ? 0
                      : memchr(text, 0, whole) != NULL ? -EILSEQ
                                                       : each(context, text);
        if (r < 0) {
            return r;
        }
        memcpy(text, kept, size - whole);
        size -= whole;
    }
    return all > 0;
}

static int note_piece(void *context, char *text)
{
    if (!is_text(text, strlen(text))) {
        return -EILSEQ;
    }
    note_record(context, text);
    return 0;
}

void collect_log(struct collector *c)
{
    static const uint16_t facts[] = {FACT_OS_LOG_LOCKUP, FACT_OS_LOG_MCE, FACT_OS_LOG_NIC,
                                     FACT_OS_LOG_POWER};
    struct log log = {0};
    struct stat status;
    bool lost = false;
    const int fd = sysfs_fd(c->tree, PATH, O_RDONLY);
    int r = fd < 0 ? fd : fstat(fd, &status) < 0 ? -errno : 0;

    if (r == 0) {
        r = log_pieces(fd, c->text, note_piece, &log, &lost);
        r = r == 0 && !S_ISCHR(status.st_mode) ? -EBADMSG : r;
    }
    if (fd >= 0) {
        close(fd);
    }
    log.lost = log.lost || lost;
    r = r >= 0 && log.error < 0 ? log.error : r;
    if (r < 0) {
        put_error(c, FACT_OS_LOG, "", r, PATH);
        put_error(c, FACT_OS_LOG_XID, "", r, PATH);
        return;
    }
    put_number(c, FACT_OS_LOG, "", log.lines, PATH);
    put_number(c, FACT_OS_LOG_LOST, "", log.lost, PATH);
    for (size_t i = 0; i < ARRAY_COUNT(facts); i++) {
        put_number(c, facts[i], "", log.counts[facts[i]], PATH);
    }
    const size_t n = strlen(log.xids);
    log.xids[n > 0 ? n - 1 : 0] = '\0';
    put(c, FACT_OS_LOG_XID, "", n > 0 ? log.xids + 1 : "none", PATH);
}
