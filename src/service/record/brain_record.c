/* brain_record.c: reads recordings of a fleet's brain and replays them. */
#include "service/record/brain_record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash_index.h"
#include "base/prng.h"
#include "service/record/brain_codec.h"
#include "service/record/brain_file.h"

struct brain_record {
    int fd; /* -1: the recording is in memory */
    const uint8_t *memory;
    uint64_t size, at;
    uint64_t segment; /* number of the next segment */
    int64_t utc_ns;
    uint8_t *bytes; /* the present segment */
    size_t room, used, read;
    bool ended;
};

/* ---- the file ----------------------------------------------------------------------------------------------------- */

/* Returns 1; 0: the file ends here; negative: an error. */
static int read_at(const struct brain_record *r, uint64_t at, void *to, size_t size)
{
    if (r->size - at < size) {
        return 0;
    }
    if (r->fd < 0) {
        memcpy(to, r->memory + at, size);
        return 1;
    }
    for (size_t done = 0; done < size;) {
        const ssize_t n = pread(r->fd, (uint8_t *)to + done, size - done, (off_t)(at + done));
        if (n < 0 && errno != EINTR) {
            return -errno;
        }
        if (n == 0) {
            return 0;
        }
        done += n > 0 ? (size_t)n : 0;
    }
    return 1;
}

static int read_head(struct brain_record *r)
{
    struct brain_file_head head;
    const int rc = read_at(r, 0, &head, sizeof(head));
    if (rc <= 0 || head.magic != BRAIN_FILE_MAGIC || head.sum != brain_file_head_sum(&head)) {
        return rc < 0 ? rc : -EPROTO;
    }
    if (head.version != BRAIN_FILE_VERSION || head.layout != brain_codec_layout()) {
        return -ESTALE;
    }
    r->utc_ns = head.utc_ns;
    r->at = sizeof(head);
    return 0;
}

/* Reads the next segment into memory and checks it. Returns 1; 0: the recording ends here correctly; negative: an error. */
static int next_segment(struct brain_record *r)
{
    struct brain_file_segment s;
    int rc = read_at(r, r->at, &s, sizeof(s));
    if (rc <= 0) {
        return rc < 0 ? rc : -ENODATA;
    }
    if (s.size > 2 * BRAIN_RECORD_SEGMENT_MAX) {
        return -EPROTO;
    }
    if (s.size > r->size - r->at - sizeof(s)) {
        return -ENODATA;
    }
    if (s.size > r->room) {
        free(r->bytes);
        r->room = 0;
        r->bytes = malloc(s.size);
        if (r->bytes == NULL) {
            return -ENOMEM;
        }
        r->room = s.size;
    }
    rc = read_at(r, r->at + sizeof(s), r->bytes, s.size);
    if (rc <= 0) {
        return rc < 0 ? rc : -ENODATA;
    }
    if (s.sum != brain_file_sum(r->segment, s.size, r->bytes)) {
        return -EPROTO;
    }
    if (s.size == 0) {
        r->ended = true;
        return r->at + sizeof(s) == r->size ? 0 : -EPROTO;
    }
    r->segment++;
    r->at += sizeof(s) + s.size;
    r->used = s.size;
    r->read = 0;
    return 1;
}

static int finish_open(struct brain_record *r, struct brain_record **ret)
{
    const int rc = read_head(r);
    if (rc < 0) {
        brain_record_close(r);
        return rc;
    }
    *ret = r;
    return 0;
}

int brain_record_open_memory(struct brain_record **ret, const void *bytes, size_t size)
{
    struct brain_record *r = calloc(1, sizeof(*r));
    if (r == NULL) {
        return -ENOMEM;
    }
    *r = (struct brain_record){.fd = -1, .memory = bytes, .size = size};
    return finish_open(r, ret);
}

int brain_record_open(struct brain_record **ret, const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    if (fd < 0) {
        return -errno;
    }
    int rc = fstat(fd, &st) < 0 ? -errno : !S_ISREG(st.st_mode) ? -EPROTO : 0;
    struct brain_record *r = rc == 0 ? calloc(1, sizeof(*r)) : NULL;
    if (r == NULL) {
        close(fd);
        return rc < 0 ? rc : -ENOMEM;
    }
    *r = (struct brain_record){.fd = fd, .size = (uint64_t)st.st_size};
    return finish_open(r, ret);
}

struct brain_record *brain_record_close(struct brain_record *r)
{
    if (r != NULL) {
        if (r->fd >= 0) {
            close(r->fd);
        }
        free(r->bytes);
        free(r);
    }
    return NULL;
}

bool brain_record_is(const char *path)
{
    uint64_t magic = 0;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const bool is =
        fd >= 0 && read(fd, &magic, sizeof(magic)) == sizeof(magic) && magic == BRAIN_FILE_MAGIC;
    if (fd >= 0) {
        close(fd);
    }
    return is;
}

/* ---- copying ------------------------------------------------------------------------------------------------------ */

static int copy_segments(struct brain_record *r, int fd)
{
    struct brain_file_head head;
    int rc = read_at(r, 0, &head, sizeof(head));
    rc = rc < 0 ? rc : write(fd, &head, sizeof(head)) == sizeof(head) ? 0 : -EIO;
    while (rc == 0 && (rc = next_segment(r)) == 1) {
        rc = brain_file_write(fd, r->segment - 1, r->bytes, r->used);
    }
    if (rc != 0 && rc != -ENODATA) {
        return rc;
    }
    rc = r->segment == 0 ? -ENODATA : brain_file_write(fd, r->segment, NULL, 0);
    return rc < 0 ? rc : fsync(fd) < 0 ? -errno : 0;
}

int brain_record_copy(const char *from, const char *to, int64_t *ret_bytes)
{
    struct brain_record *r = NULL;
    int rc = brain_record_open(&r, from);
    if (rc < 0) {
        return rc;
    }
    const int fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    rc = fd < 0 ? -errno : copy_segments(r, fd);
    if (fd >= 0) {
        *ret_bytes = lseek(fd, 0, SEEK_CUR);
        close(fd);
        if (rc < 0) {
            unlink(to);
        }
    }
    brain_record_close(r);
    return rc;
}

/* ---- replay --------------------------------------------------------------------------------------------- */

struct told_name {
    uint32_t kind;
    struct brain_name is;
    char *name, *leaf; /* owned */
};

struct player {
    struct brain_record *record;
    struct brain *brain;
    struct brain_decoder decoder;
    struct told_name *names;
    uint32_t name_count, name_room;
    struct hash_index by_id;
    struct brain_outcome outcome;
    struct brain_answer answer; /* to the last fact */
    enum brain_fact asked;      /* the last fact; BRAIN_FACT_COUNT: there is no answer to compare */
    int error;
};

static uint64_t name_key(uint32_t kind, uint64_t id)
{
    return hash_u64(id, kind);
}

static struct told_name *find_name(const struct player *p, uint32_t kind, uint64_t id)
{
    for (uint32_t at = hash_index_first(&p->by_id, name_key(kind, id)), i;
         (i = hash_index_entry(&p->by_id, at)) != HASH_INDEX_NONE;
         at = hash_index_next(&p->by_id, at)) {
        if (p->names[i].kind == kind && p->names[i].is.id == id) {
            return &p->names[i];
        }
    }
    return NULL;
}

static struct told_name *add_name(struct player *p, uint32_t kind, uint64_t id)
{
    if (p->name_count == p->name_room) {
        const uint32_t room = p->name_room * 2 + 64;
        struct told_name *larger = realloc(p->names, room * sizeof(*larger));
        p->names = larger != NULL ? larger : p->names;
        if (larger == NULL || hash_index_room(&p->by_id, room) < 0) {
            return NULL;
        }
        p->name_room = room;
        for (uint32_t i = 0; i < p->name_count; i++) {
            hash_index_put(&p->by_id, name_key(p->names[i].kind, p->names[i].is.id), i);
        }
    }
    struct told_name *n = &p->names[p->name_count];
    *n = (struct told_name){.kind = kind, .is = {.id = id}};
    hash_index_put(&p->by_id, name_key(kind, id), p->name_count++);
    return n;
}

static char *own_text(const char *text, int *error)
{
    char *copy = text != NULL ? strdup(text) : NULL;
    *error = text != NULL && copy == NULL ? -ENOMEM : *error;
    return copy;
}

static void keep_name(struct player *p, const struct brain_name *is)
{
    struct told_name *n = find_name(p, is->kind, is->id);
    n = n != NULL ? n : add_name(p, is->kind, is->id);
    if (n == NULL) {
        p->error = -ENOMEM;
        return;
    }
    char *const name = own_text(is->name, &p->error), *const leaf = own_text(is->leaf, &p->error);
    free(n->name);
    free(n->leaf);
    n->is = *is;
    n->is.name = n->name = name;
    n->is.leaf = n->leaf = leaf;
    p->outcome.names++;
}

/* Reads the next record. Returns 1; 0: the end; negative: damage. */
static int next_item(struct player *p, struct brain_record_item *ret)
{
    struct brain_record *r = p->record;
    while (r->read == r->used && !r->ended) {
        const int rc = next_segment(r);
        if (rc <= 0) {
            return rc;
        }
        brain_codec_init(&p->decoder.codec);
    }
    if (r->ended) {
        return 0;
    }
    const long used = brain_decode(&p->decoder, r->bytes + r->read, r->used - r->read, ret);
    if (used < 0) { /* the segment's checksum is right, but no recorder wrote such a record */
        return -EPROTO;
    }
    r->read += (size_t)used;
    return 1;
}

/* Returns the recorded answer to a question for a name. The answer follows the fact that is being replayed, unless it was
 * recorded earlier. A name never begins a segment: the recorder keeps a fact and its names together. */
static const struct brain_name *name_of(struct player *p, uint32_t kind, uint64_t id)
{
    const struct brain_record *r = p->record;
    struct brain_record_item item;
    if (r->read < r->used && r->bytes[r->read] == BRAIN_CODEC_NAME) {
        const size_t before = r->read;
        if (next_item(p, &item) == 1 && item.name.kind == kind && item.name.id == id) {
            keep_name(p, &item.name);
        } else {
            p->record->read = before;
        }
    }
    const struct told_name *n = find_name(p, kind, id);
    p->outcome.different += n == NULL;
    return n != NULL && n->is.known ? &n->is : NULL;
}

static bool nic_of(void *context, uint32_t nic, struct alert_nic *ret)
{
    const struct brain_name *n = name_of(context, BRAIN_NAME_NIC, nic);
    if (n != NULL) {
        *ret =
            (struct alert_nic){.name = n->name, .leaf = n->leaf, .host = n->host, .rail = n->rail};
    }
    return n != NULL;
}

static const char *host_of(void *context, uint32_t host)
{
    const struct brain_name *n = name_of(context, BRAIN_NAME_HOST, host);
    return n != NULL ? n->name : NULL;
}

static const char *job_of(void *context, uint64_t job)
{
    const struct brain_name *n = name_of(context, BRAIN_NAME_JOB, job);
    return n != NULL ? n->name : NULL;
}

static uint64_t tenant_of(void *context, uint32_t host)
{
    const struct brain_name *n = name_of(context, BRAIN_NAME_TENANT, host);
    return n != NULL ? n->tenant : 0;
}

static void count(struct brain_outcome *o, enum brain_fact fact, const struct brain_answer *a)
{
    o->events += fact == BRAIN_HOSTS_NEXT && a->result == 1 && a->host.kind != FLEET_SHOWN;
    o->incidents += fact == BRAIN_ALERTS_NEXT && a->result == 1;
}

static int play_item(struct player *p, const struct brain_record_item *item,
                     void (*on_answer)(void *context, struct mono now, enum brain_fact fact,
                                       const struct brain_answer *answer),
                     void *context)
{
    struct brain_outcome *o = &p->outcome;
    if (item->kind == BRAIN_CODEC_NAME) {
        keep_name(p, &item->name); /* a question outside of a fact: only to show a name */
    } else if (item->kind == BRAIN_CODEC_ANSWER) {
        o->answers++;
        o->different +=
            item->fact != p->asked || item->print != brain_answer_print(item->fact, &p->answer);
        p->asked = BRAIN_FACT_COUNT;
    } else {
        o->first = o->facts == 0 ? item->now : o->first;
        o->last = item->now;
        o->facts++;
        memset(&p->answer, 0, sizeof(p->answer));
        brain_tell(p->brain, item->now, item->fact, item->data, &p->answer);
        p->asked = item->fact;
        count(o, item->fact, &p->answer);
        if (on_answer != NULL) {
            on_answer(context, item->now, item->fact, &p->answer);
        }
    }
    return p->error;
}

static void done(struct player *p)
{
    brain_delete(p->brain);
    brain_decoder_done(&p->decoder);
    for (uint32_t i = 0; i < p->name_count; i++) {
        free(p->names[i].name);
        free(p->names[i].leaf);
    }
    free(p->names);
    hash_index_done(&p->by_id);
    free(p);
}

int brain_record_play(struct brain_record *r,
                      void (*on_answer)(void *context, struct mono now, enum brain_fact fact,
                                        const struct brain_answer *answer),
                      void *context, struct brain_outcome *ret)
{
    struct player *p = calloc(1, sizeof(*p));
    if (p == NULL) {
        return -ENOMEM;
    }
    p->record = r;
    p->asked = BRAIN_FACT_COUNT;
    p->brain = brain_new();
    int rc = p->brain == NULL ? -ENOMEM : brain_decoder_init(&p->decoder);
    if (rc == 0) {
        const struct alert_fleet names = {
            .nic = nic_of, .host = host_of, .job = job_of, .tenant = tenant_of, .context = p};
        brain_names(p->brain, &names);
    }
    while (rc == 0) {
        struct brain_record_item item;
        const int next = next_item(p, &item);
        if (next <= 0) {
            p->outcome.damage = next;
            p->outcome.damage_at = r->at - (r->used - r->read);
            rc = next == -EPROTO || next == -ENODATA ? 0 : next;
            break;
        }
        rc = play_item(p, &item, on_answer, context);
    }
    p->outcome.utc_ns = r->utc_ns;
    if (rc == 0) {
        *ret = p->outcome;
    }
    done(p);
    return rc;
}
