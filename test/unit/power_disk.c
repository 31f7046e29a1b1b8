/* power_disk.c: a file is its content on the disk, plus writes on their way to it. */
#include "power_disk.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "base/prng.h"

enum { FILE_MAX = 16, NAME_SIZE = 200, SHM_MAX = 64, LOCKS = SQLITE_SHM_NLOCK };

struct bytes {
    uint8_t *at;
    size_t size, capacity;
};

struct change { /* on its way: a write, or a new length (size 0) */
    size_t offset, size;
    uint8_t *bytes;
};

struct node {
    char name[NAME_SIZE];
    bool there, made; /* visible to programs; its name is on the disk */
    struct bytes now, disk;
    struct bytes before; /* the removed file of that name: its removal may not be on the disk */
    bool has_before;
    struct change *changes;
    size_t change_count, change_capacity;
    unsigned readers, users;
    const void *reserved, *exclusive; /* whose */
    void *shm[SHM_MAX];
    unsigned shm_count, shm_shared[LOCKS];
    const void *shm_owner[LOCKS];
};

struct handle {
    sqlite3_file base;
    struct node *node;
    int level;
    bool remove, journal;
    uint16_t shm_shared; /* bits of our own */
};

static struct {
    struct node nodes[FILE_MAX];
    uint64_t prng, changes, cut_at, limit;
    bool off, lies, registered;
} disk;

static uint64_t draw(void)
{
    return disk.prng = hash_u64(disk.prng, 3);
}

/* ---- bytes ---- */

static void resize(struct bytes *b, size_t size)
{
    if (size > b->capacity) {
        b->capacity = size * 2 + 4096;
        b->at = realloc(b->at, b->capacity);
        ASSERT(b->at != NULL);
    }
    if (size > b->size) {
        memset(b->at + b->size, 0, size - b->size);
    }
    b->size = size;
}

static void place(struct bytes *b, size_t offset, const uint8_t *bytes, size_t size)
{
    if (offset + size > b->size) {
        resize(b, offset + size);
    }
    if (size > 0) {
        memcpy(b->at + offset, bytes, size);
    }
}

static void forget_changes(struct node *n)
{
    for (size_t i = 0; i < n->change_count; i++) {
        free(n->changes[i].bytes);
    }
    n->change_count = 0;
}

static void remember(struct node *n, size_t offset, const uint8_t *bytes, size_t size)
{
    if (n->change_count == n->change_capacity) {
        n->change_capacity = n->change_capacity * 2 + 64;
        n->changes = realloc(n->changes, n->change_capacity * sizeof(n->changes[0]));
        ASSERT(n->changes != NULL);
    }
    struct change *c = &n->changes[n->change_count++];
    *c = (struct change){offset, size, size > 0 ? malloc(size) : NULL};
    if (size > 0) {
        ASSERT(c->bytes != NULL);
        memcpy(c->bytes, bytes, size);
    }
}

/* ---- the power ---- */

/* For one write: each sector is written or not. */
static void tear(struct node *n, const struct change *c, unsigned luck)
{
    const unsigned how = luck < 2 ? luck : (unsigned)(draw() % 4); /* all, none, some */
    for (size_t at = 0, step; at < c->size; at += step) {
        const size_t sector_end =
            (c->offset + at) / POWER_DISK_SECTOR * POWER_DISK_SECTOR + POWER_DISK_SECTOR;
        step = sector_end - c->offset - at;
        step = step < c->size - at ? step : c->size - at;
        if (how == 0 || (how >= 2 && (draw() & 1) != 0)) {
            place(&n->disk, c->offset + at, c->bytes + at, step);
        }
    }
}

void power_disk_cut(void)
{
    const unsigned luck = (unsigned)(draw() % 4); /* 0: all gets there, 1: nothing, else: some */
    disk.off = true;
    for (size_t i = 0; i < FILE_MAX; i++) {
        struct node *n = &disk.nodes[i];
        for (size_t k = 0; k < n->change_count; k++) { /* in any order, unless all get there */
            const size_t other = luck == 0 ? k : k + draw() % (n->change_count - k);
            const struct change c = n->changes[other];
            n->changes[other] = n->changes[k];
            n->changes[k] = c;
            if (c.size > 0) {
                tear(n, &c, luck);
            } else if (luck == 0 || (luck > 1 && (draw() & 1) != 0)) {
                resize(&n->disk, c.offset);
            }
        }
        forget_changes(n);
        if (n->has_before && (draw() & 1) != 0) { /* the name is still the old file's */
            resize(&n->disk, 0);
            place(&n->disk, 0, n->before.at, n->before.size);
            n->there = true;
        } else if (!n->made && (draw() & 1) != 0) { /* the name was never written */
            n->there = false;
        }
    }
}

void power_disk_restore(void)
{
    for (size_t i = 0; i < FILE_MAX; i++) {
        struct node *n = &disk.nodes[i];
        ASSERT(n->users == 0);
        n->there = n->there && n->name[0] != 0;
        n->made = n->there;
        n->has_before = false;
        resize(&n->now, 0);
        if (n->there) {
            place(&n->now, 0, n->disk.at, n->disk.size);
        } else {
            n->disk.size = 0;
        }
        n->readers = 0;
        n->reserved = n->exclusive = NULL;
    }
    disk.off = false;
    disk.cut_at = 0;
    disk.changes = 0;
}

/* Called before each change. True: there is no power for it; it stays on its way. */
static bool change(void)
{
    if (!disk.off && ++disk.changes == disk.cut_at) {
        disk.cut_at = 0;
        return true;
    }
    return disk.off;
}

/* ---- files ---- */

static struct node *find(const char *name, bool make)
{
    struct node *empty = NULL;
    for (size_t i = 0; i < FILE_MAX; i++) {
        if (strcmp(disk.nodes[i].name, name) == 0) {
            return &disk.nodes[i];
        }
        if (disk.nodes[i].name[0] == 0 && empty == NULL) {
            empty = &disk.nodes[i];
        }
    }
    if (empty != NULL && make) {
        snprintf(empty->name, sizeof(empty->name), "%s", name);
    }
    return make ? empty : NULL;
}

static int do_close(sqlite3_file *file)
{
    struct handle *h = (struct handle *)file;
    h->node->users--;
    if (h->remove) {
        h->node->there = false;
    }
    return SQLITE_OK;
}

static int do_read(sqlite3_file *file, void *to, int size, sqlite3_int64 offset)
{
    const struct node *n = ((struct handle *)file)->node;
    const size_t at = (size_t)offset, left = at < n->now.size ? n->now.size - at : 0,
                 count = left < (size_t)size ? left : (size_t)size;
    if (disk.off) {
        return SQLITE_IOERR_READ;
    }
    memset(to, 0, (size_t)size);
    if (count > 0) {
        memcpy(to, n->now.at + at, count);
    }
    return count == (size_t)size ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
}

size_t power_disk_bytes(void)
{
    size_t sum = 0;
    for (size_t i = 0; i < FILE_MAX; i++) {
        sum += disk.nodes[i].there ? disk.nodes[i].now.size : 0;
    }
    return sum;
}

static int do_write(sqlite3_file *file, const void *bytes, int size, sqlite3_int64 offset)
{
    struct node *n = ((struct handle *)file)->node;
    const size_t end = (size_t)offset + (size_t)size;
    if (disk.off) {
        return SQLITE_IOERR_WRITE;
    }
    if (disk.limit != 0 && end > n->now.size &&
        power_disk_bytes() + end - n->now.size > disk.limit) {
        return SQLITE_FULL;
    }
    const bool last = change();
    remember(n, (size_t)offset, bytes, (size_t)size);
    place(&n->now, (size_t)offset, bytes, (size_t)size);
    if (last) {
        power_disk_cut();
        return SQLITE_IOERR_WRITE;
    }
    return SQLITE_OK;
}

static int do_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    struct node *n = ((struct handle *)file)->node;
    if (disk.off) {
        return SQLITE_IOERR_TRUNCATE;
    }
    const bool last = change();
    remember(n, (size_t)size, NULL, 0);
    resize(&n->now, (size_t)size);
    if (last) {
        power_disk_cut();
        return SQLITE_IOERR_TRUNCATE;
    }
    return SQLITE_OK;
}

/* Syncs the folder's entries: new names are there, removed ones are gone. */
static void sync_names(void)
{
    for (size_t i = 0; i < FILE_MAX; i++) {
        disk.nodes[i].made = disk.nodes[i].there;
        disk.nodes[i].has_before = false;
    }
}

static int do_sync(sqlite3_file *file, int flags)
{
    struct node *n = ((struct handle *)file)->node;
    if (disk.off) {
        return SQLITE_IOERR_FSYNC;
    }
    if (change()) { /* on its way to the disk; it isn't known whether it is written */
        power_disk_cut();
        return SQLITE_IOERR_FSYNC;
    }
    if (!disk.lies) {
        forget_changes(n);
        resize(&n->disk, 0);
        place(&n->disk, 0, n->now.at, n->now.size);
        if (!n->made && ((struct handle *)file)->journal) { /* SQLite syncs their folder, too */
            sync_names();
        }
    }
    return SQLITE_OK;
}

static int do_size(sqlite3_file *file, sqlite3_int64 *ret)
{
    *ret = (sqlite3_int64)((struct handle *)file)->node->now.size;
    return disk.off ? SQLITE_IOERR_FSTAT : SQLITE_OK;
}

/* ---- locks: as SQLite's documentation of xLock has them ---- */

static int do_lock(sqlite3_file *file, int level)
{
    struct handle *h = (struct handle *)file;
    struct node *n = h->node;
    if (level <= h->level) {
        return SQLITE_OK;
    }
    if (level == SQLITE_LOCK_SHARED) {
        if (n->exclusive != NULL) {
            return SQLITE_BUSY;
        }
        n->readers++;
    } else if (level == SQLITE_LOCK_RESERVED) {
        if (n->reserved != NULL) {
            return SQLITE_BUSY;
        }
        n->reserved = h;
    } else {
        if ((n->exclusive != NULL && n->exclusive != h) ||
            (n->reserved != NULL && n->reserved != h)) {
            return SQLITE_BUSY;
        }
        n->exclusive = h;
        if (n->readers > 1) {
            h->level = SQLITE_LOCK_PENDING;
            return SQLITE_BUSY;
        }
    }
    h->level = level;
    return SQLITE_OK;
}

static int do_unlock(sqlite3_file *file, int level)
{
    struct handle *h = (struct handle *)file;
    struct node *n = h->node;
    if (h->level > SQLITE_LOCK_SHARED) {
        n->exclusive = n->exclusive == h ? NULL : n->exclusive;
        n->reserved = n->reserved == h ? NULL : n->reserved;
    }
    if (level == SQLITE_LOCK_NONE && h->level >= SQLITE_LOCK_SHARED) {
        n->readers--;
    }
    h->level = level < h->level ? level : h->level;
    return SQLITE_OK;
}

static int do_check_lock(sqlite3_file *file, int *ret)
{
    const struct node *n = ((struct handle *)file)->node;
    *ret = n->reserved != NULL || n->exclusive != NULL;
    return SQLITE_OK;
}

static int do_control(sqlite3_file *file, int op, void *arg)
{
    return SQLITE_NOTFOUND;
}

static int do_sector(sqlite3_file *file)
{
    return POWER_DISK_SECTOR;
}

static int do_characteristics(sqlite3_file *file)
{
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE; /* like the real one, for every disk */
}

/* ---- the shared index of the log: memory, gone with the power ---- */

static int do_shm_map(sqlite3_file *file, int region, int size, int extend, void volatile **ret)
{
    struct node *n = ((struct handle *)file)->node;
    *ret = NULL;
    if (region >= SHM_MAX) {
        return SQLITE_NOMEM;
    }
    if ((unsigned)region >= n->shm_count && !extend) {
        return SQLITE_OK;
    }
    while (n->shm_count <= (unsigned)region) {
        n->shm[n->shm_count] = calloc(1, (size_t)size);
        ASSERT(n->shm[n->shm_count] != NULL);
        n->shm_count++;
    }
    *ret = n->shm[region];
    return SQLITE_OK;
}

static int do_shm_lock(sqlite3_file *file, int offset, int count, int flags)
{
    struct handle *h = (struct handle *)file;
    struct node *n = h->node;
    const bool shared = (flags & SQLITE_SHM_SHARED) != 0;
    for (int i = offset; (flags & SQLITE_SHM_LOCK) != 0 && i < offset + count; i++) {
        const bool own = (h->shm_shared >> i & 1) != 0;
        if ((n->shm_owner[i] != NULL && n->shm_owner[i] != h) ||
            (!shared && n->shm_shared[i] > own)) {
            return SQLITE_BUSY;
        }
    }
    for (int i = offset; i < offset + count; i++) {
        const uint16_t bit = (uint16_t)(1u << i);
        if ((flags & SQLITE_SHM_LOCK) == 0) {
            n->shm_owner[i] = n->shm_owner[i] == h ? NULL : n->shm_owner[i];
            n->shm_shared[i] -= (h->shm_shared & bit) != 0;
            h->shm_shared &= (uint16_t)~bit;
        } else if (!shared) {
            n->shm_owner[i] = h;
        } else if ((h->shm_shared & bit) == 0) {
            n->shm_shared[i]++;
            h->shm_shared |= bit;
        }
    }
    return SQLITE_OK;
}

static void do_shm_barrier(sqlite3_file *file)
{
    __sync_synchronize();
}

static int do_shm_unmap(sqlite3_file *file, int remove)
{
    struct handle *h = (struct handle *)file;
    (void)do_shm_lock(file, 0, LOCKS, SQLITE_SHM_UNLOCK | SQLITE_SHM_EXCLUSIVE);
    if (h->node->users <= 1) {
        for (unsigned i = 0; i < h->node->shm_count; i++) {
            free(h->node->shm[i]);
        }
        h->node->shm_count = 0;
    }
    return SQLITE_OK;
}

static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = do_close,
    .xRead = do_read,
    .xWrite = do_write,
    .xTruncate = do_truncate,
    .xSync = do_sync,
    .xFileSize = do_size,
    .xLock = do_lock,
    .xUnlock = do_unlock,
    .xCheckReservedLock = do_check_lock,
    .xFileControl = do_control,
    .xSectorSize = do_sector,
    .xDeviceCharacteristics = do_characteristics,
    .xShmMap = do_shm_map,
    .xShmLock = do_shm_lock,
    .xShmBarrier = do_shm_barrier,
    .xShmUnmap = do_shm_unmap,
};

/* ---- the layer ---- */

static int do_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret)
{
    struct handle *h = (struct handle *)file;
    static unsigned temporaries;
    char temporary[32];
    memset(h, 0, sizeof(*h));
    if (disk.off) {
        return SQLITE_CANTOPEN;
    }
    if (name == NULL) {
        snprintf(temporary, sizeof(temporary), "temporary-%u", temporaries++);
        name = temporary;
    }
    struct node *n = find(name, (flags & SQLITE_OPEN_CREATE) != 0);
    if (n == NULL || (!n->there && (flags & SQLITE_OPEN_CREATE) == 0)) {
        return SQLITE_CANTOPEN;
    }
    if (!n->there) {
        n->there = true;
        resize(&n->now, 0);
    }
    h->node = n;
    h->remove = (flags & SQLITE_OPEN_DELETEONCLOSE) != 0;
    h->journal = (flags & (SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_WAL)) != 0;
    h->base.pMethods = &methods;
    n->users++;
    if (ret != NULL) {
        *ret = flags;
    }
    return SQLITE_OK;
}

static int do_delete(sqlite3_vfs *vfs, const char *name, int sync_folder)
{
    struct node *n = find(name, false);
    if (disk.off) {
        return SQLITE_IOERR_DELETE;
    }
    if (n == NULL || !n->there) {
        return SQLITE_IOERR_DELETE_NOENT;
    }
    const bool last = change();
    if (n->made) {
        resize(&n->before, 0);
        place(&n->before, 0, n->disk.at, n->disk.size);
        n->has_before = true;
    }
    forget_changes(n);
    resize(&n->disk, 0);
    resize(&n->now, 0);
    n->there = n->made = false;
    if (last) {
        power_disk_cut();
        return SQLITE_IOERR_DELETE;
    }
    if (sync_folder && !disk.lies) {
        sync_names();
    }
    return SQLITE_OK;
}

static int do_access(sqlite3_vfs *vfs, const char *name, int flags, int *ret)
{
    const struct node *n = find(name, false);
    *ret = n != NULL && n->there;
    return disk.off ? SQLITE_IOERR_ACCESS : SQLITE_OK;
}

static int do_path(sqlite3_vfs *vfs, const char *name, int size, char *ret)
{
    snprintf(ret, (size_t)size, "%s", name);
    return SQLITE_OK;
}

static int do_random(sqlite3_vfs *vfs, int size, char *ret)
{
    for (int i = 0; i < size; i++) {
        ret[i] = (char)draw();
    }
    return size;
}

static int do_sleep(sqlite3_vfs *vfs, int us)
{
    return us;
}

static int do_time(sqlite3_vfs *vfs, double *ret)
{
    *ret = 2461000.5;
    return SQLITE_OK;
}

static int do_last_error(sqlite3_vfs *vfs, int size, char *ret)
{
    return 0;
}

static sqlite3_vfs layer = {
    .iVersion = 1,
    .szOsFile = sizeof(struct handle),
    .mxPathname = NAME_SIZE - 1,
    .zName = "power",
    .xOpen = do_open,
    .xDelete = do_delete,
    .xAccess = do_access,
    .xFullPathname = do_path,
    .xRandomness = do_random,
    .xSleep = do_sleep,
    .xCurrentTime = do_time,
    .xGetLastError = do_last_error,
};

void power_disk_install(uint64_t seed)
{
    power_disk_done();
    disk.prng = seed;
    disk.registered = sqlite3_vfs_register(&layer, 1) == SQLITE_OK;
    ASSERT(disk.registered);
}

void power_disk_done(void)
{
    for (size_t i = 0; i < FILE_MAX; i++) {
        struct node *n = &disk.nodes[i];
        forget_changes(n);
        free(n->changes);
        free(n->now.at);
        free(n->disk.at);
        free(n->before.at);
        for (unsigned k = 0; k < n->shm_count; k++) {
            free(n->shm[k]);
        }
    }
    if (disk.registered) {
        sqlite3_vfs_unregister(&layer);
    }
    memset(&disk, 0, sizeof(disk));
}

void power_disk_cut_at(uint64_t nth)
{
    disk.cut_at = nth == 0 ? 0 : disk.changes + nth;
}

bool power_disk_is_off(void)
{
    return disk.off;
}

uint64_t power_disk_changes(void)
{
    return disk.changes;
}

void power_disk_lie(bool lies)
{
    disk.lies = lies;
}

void power_disk_limit(uint64_t bytes)
{
    disk.limit = bytes;
}
