/* members_file.c: the list's file: the arrays as in memory, then changes. */
#include "service/agent/members.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/fleet/member.h"
#include "platform/message/message.h"
#include "platform/tls/tls.h"
#include "wire/crc32c.h"

#define MAGIC      0x31424d454d4c46ULL /* "FLMEMB1" */
#define PAGE       65536u              /* each array begins on a multiple of this */
#define CHANGE_MAX (16u << 20)
#define LOG_MAX    (512u << 10) /* bytes of changes; above this the file is written again */
#define LOG_COUNT  1024

struct head {
    uint64_t magic, version, digest, layout;
    uint32_t peer_count, host_count, leaf_count, sum; /* sum: checksum of the arrays */
    /* head_sum: checksum of all fields before it */
    uint32_t reserved, head_sum;
};

struct change { /* stands before each change */
    uint32_t size, sum;
};

struct section {
    void *memory;
    size_t size, at; /* at: offset in the file */
};

enum { SECTIONS = 5 };

static size_t up(size_t size)
{
    return (size + PAGE - 1) / PAGE * PAGE;
}

/* Works out where each array is in the file. Returns where the changes begin. */
static size_t sections(const struct agent_config *c, const struct head *h,
                       struct section s[static SECTIONS])
{
    s[0] = (struct section){.memory = c->peers, .size = h->peer_count * sizeof(*c->peers)};
    s[1] = (struct section){.memory = c->more, .size = h->peer_count * sizeof(*c->more)};
    s[2] =
        (struct section){.memory = c->host_names, .size = h->host_count * sizeof(*c->host_names)};
    s[3] = (struct section){.memory = c->host_keys, .size = h->host_count * sizeof(*c->host_keys)};
    s[4] =
        (struct section){.memory = c->leaf_names, .size = h->leaf_count * sizeof(*c->leaf_names)};
    size_t at = PAGE;
    for (size_t i = 0; i < SECTIONS; i++) {
        s[i].at = at;
        at += up(s[i].size);
    }
    return at;
}

static uint64_t layout(void)
{
    return sizeof(struct mesh_peer) << 16 | sizeof(struct agent_peer);
}

static uint32_t head_sum(const struct head *h)
{
    return crc32c(0, h, offsetof(struct head, head_sum));
}

/* ---- written ---- */

int members_save(struct agent_config *c, const char *path)
{
    struct head h = {.magic = MAGIC,
                     .version = c->fleet_version,
                     .digest = c->members_digest,
                     .layout = layout(),
                     .peer_count = c->peer_count,
                     .host_count = c->host_count,
                     .leaf_count = c->leaf_count};
    struct section s[SECTIONS];
    const size_t size = sections(c, &h, s);
    uint8_t *bytes = calloc(1, size);
    if (bytes == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < SECTIONS; i++) {
        if (s[i].size > 0) {
            memcpy(bytes + s[i].at, s[i].memory, s[i].size);
        }
    }
    h.sum = crc32c(0, bytes + PAGE, size - PAGE);
    h.head_sum = head_sum(&h);
    memcpy(bytes, &h, sizeof(h));
    const int r = tls_write_file(path, bytes, size, 0644);
    free(bytes);
    c->members_end = r < 0 ? 0 : size;
    c->members_log = c->members_changes = 0;
    return r;
}

static int write_all(int fd, const struct iovec parts[2], off_t at)
{
    const size_t size = parts[0].iov_len + parts[1].iov_len;
    const ssize_t n = pwritev(fd, parts, 2, at);
    return n < 0 ? -errno : (size_t)n != size ? -ENOSPC : 0;
}

int members_append(struct agent_config *c, const char *path, const Foliot__V1__Members *m)
{
    struct message_buffer encoded = {0};
    if (c->members_end == 0 || c->members_log > LOG_MAX || c->members_changes >= LOG_COUNT) {
        return -EFBIG;
    }
    int r = message_encode(&m->base, &encoded);
    if (r < 0) {
        return r;
    }
    const struct change change = {(uint32_t)encoded.size, crc32c(0, encoded.bytes, encoded.size)};
    const struct iovec parts[2] = {{(void *)(uintptr_t)&change, sizeof(change)},
                                   {encoded.bytes, encoded.size}};
    struct stat st;
    const int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    r = fd < 0 || fstat(fd, &st) < 0 ? -errno : (size_t)st.st_size < c->members_end ? -EFBIG : 0;
    r = r == 0 && ftruncate(fd, (off_t)c->members_end) < 0 ? -errno : r;
    r = r < 0 ? r : write_all(fd, parts, (off_t)c->members_end);
    if (fd >= 0) {
        close(fd);
    }
    if (r == 0) {
        c->members_end += sizeof(change) + encoded.size;
        c->members_log += (uint32_t)(sizeof(change) + encoded.size);
        c->members_changes++;
    }
    message_buffer_done(&encoded);
    return r;
}

/* ---- read ---- */

static int read_head(int fd, struct head *h, size_t *ret_size)
{
    struct stat st;
    if (fstat(fd, &st) < 0) {
        return -errno;
    }
    if (!S_ISREG(st.st_mode) || pread(fd, h, sizeof(*h), 0) != (ssize_t)sizeof(*h) ||
        h->magic != MAGIC || h->layout != layout() || h->head_sum != head_sum(h) ||
        h->peer_count > FLEET_NIC_MAX || h->host_count > FLEET_NIC_MAX ||
        h->leaf_count > FLEET_LEAF_MAX) {
        return -EBADMSG;
    }
    *ret_size = (size_t)st.st_size;
    return 0;
}

/* Reads the arrays into memory. Mapping the file would be unsafe: if another program cuts the file, the agent would end with
 * SIGBUS, and if it writes to the file, the list would change. */
static int read_sections(int fd, const struct head *h, const struct section s[static SECTIONS])
{
    uint32_t sum = 0;
    for (size_t i = 0; i < SECTIONS; i++) {
        const ssize_t n = pread(fd, s[i].memory, up(s[i].size), (off_t)s[i].at);
        if (n < 0 || (size_t)n != up(s[i].size)) {
            return n < 0 ? -errno : -EBADMSG;
        }
        sum = crc32c(sum, s[i].memory, up(s[i].size));
    }
    return sum == h->sum ? 0 : -EBADMSG;
}

static bool text_good(const char *text, size_t size)
{
    return memchr(text, 0, size) != NULL;
}

/* Another program may have written the file. Its values may be wrong, but they must not lead to an access outside of the
 * arrays. */
static bool arrays_good(const struct agent_config *c)
{
    for (uint32_t i = 0; i < c->host_count; i++) {
        if (!text_good(c->host_names[i], AGENT_NAME_SIZE)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < c->leaf_count; i++) {
        if (!text_good(c->leaf_names[i], AGENT_NAME_SIZE)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < c->peer_count; i++) {
        const struct mesh_peer *p = &c->peers[i];
        if (p->nic.index >= FLEET_NIC_MAX || p->host.index >= c->host_count ||
            (i > 0 && p->nic.index <= c->peers[i - 1].nic.index) ||
            !text_good(c->more[i].nic_name, IF_NAMESIZE) ||
            (c->more[i].leaf != LEAF_UNKNOWN && c->more[i].leaf >= c->leaf_count)) {
            return false;
        }
    }
    return true;
}

/* Applies the next change. < 0: it is cut off, damaged, or not for this version. */
static int take_change(struct agent_config *c, const uint8_t *bytes, size_t size, size_t *ret_used)
{
    struct change change;
    struct message_arena arena = {0};
    struct members_plan plan;
    char words[MEMBERS_WORDS];
    if (size < sizeof(change)) {
        return -ENODATA;
    }
    memcpy(&change, bytes, sizeof(change));
    if (change.size > CHANGE_MAX || change.size > size - sizeof(change) ||
        crc32c(0, bytes + sizeof(change), change.size) != change.sum ||
        message_arena_init(&arena, change.size * (size_t)8 + 65536) < 0) {
        return -EBADMSG;
    }
    const Foliot__V1__Members *m = message_decode(&arena, &foliot__v1__members__descriptor,
                                                  bytes + sizeof(change), change.size);
    int r = m == NULL || m->from == 0 ? -EBADMSG : members_plan(c, m, HOST_NONE, &plan, words);
    if (r == 0) {
        members_apply(c, m, &plan, true);
        members_plan_done(&plan);
        *ret_used = sizeof(change) + change.size;
    }
    message_arena_done(&arena);
    return r;
}

static int take_changes(struct agent_config *c, int fd, size_t from, size_t size)
{
    const size_t most = LOG_MAX + sizeof(struct change) + CHANGE_MAX,
                 count = size - from < most ? size - from : most;
    uint8_t *bytes = malloc(count + 1);
    if (bytes == NULL) {
        return -ENOMEM;
    }
    const ssize_t n = pread(fd, bytes, count, (off_t)from);
    size_t at = 0, used = 0;
    while (n > 0 && take_change(c, bytes + at, (size_t)n - at, &used) == 0) {
        at += used;
        c->members_changes++;
    }
    free(bytes);
    c->members_log = (uint32_t)at;
    c->members_end = from + at;
    return n < 0 ? -errno : 0;
}

static int load(struct agent_config *c, int fd, char words[static MEMBERS_WORDS])
{
    struct head h;
    struct section s[SECTIONS];
    size_t size = 0;
    int r = read_head(fd, &h, &size);
    const size_t end = r == 0 ? sections(c, &h, s) : 0;
    r = r == 0 && size < end ? -EBADMSG : r;
    r = r < 0 ? r : read_sections(fd, &h, s);
    if (r < 0) {
        snprintf(words, MEMBERS_WORDS, "expected a list of members as agents keep it, found %s",
                 r == -EBADMSG ? "a file that is none, or is damaged" : strerror(-r));
        return r;
    }
    c->peer_count = h.peer_count;
    c->host_count = h.host_count;
    c->leaf_count = h.leaf_count;
    c->fleet_version = h.version;
    c->members_digest = h.digest;
    if (!arrays_good(c) || members_digest(c) != h.digest) {
        snprintf(words, MEMBERS_WORDS, "expected a good list of members, found a damaged one");
        return -EBADMSG;
    }
    return take_changes(c, fd, end, size);
}

int members_load(struct agent_config *c, const char *path, char words[static MEMBERS_WORDS])
{
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    words[0] = 0;
    if (fd < 0) {
        snprintf(words, MEMBERS_WORDS, "%s", strerror(errno));
        return -errno;
    }
    const int r = load(c, fd, words);
    c->host_keys_at = fstat(fd, &st) == 0 ? st.st_mtime : 0;
    close(fd);
    return r;
}
