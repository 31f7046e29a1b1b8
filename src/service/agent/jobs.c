/* jobs.c: finds and reads job pages. jobs_change.c makes events of the changes. */
#include "service/agent/jobs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "service/agent/jobs_internal.h"

#define LIST_NS     NS_PER_S
#define ENTRIES_MAX 4096 /* entries of a folder that are read in one look */

/* -- life ----------------------------------------------------------------------------------- */

int jobs_new(struct jobs **ret_jobs, const char *const folders[], uint32_t count)
{
    struct jobs *jobs = calloc(1, sizeof(*jobs));

    if (jobs == NULL) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < count && i < JOBS_FOLDER_MAX; i++) {
        const int n = snprintf(jobs->folders[i], sizeof(jobs->folders[i]), "%s", folders[i]);
        if (n < 0 || (size_t)n >= sizeof(jobs->folders[i])) {
            jobs_free(jobs);
            return -ENAMETOOLONG;
        }
        jobs->folder_count++;
    }
    jobs->next_list = (struct mono){INT64_MIN};
    *ret_jobs = jobs;
    return 0;
}

static void forget(struct jobs *jobs, uint32_t i)
{
    struct job_process *p = jobs->processes[i];

    if (p->fd >= 0) {
        close(p->fd);
    }
    jobs->lanes_kept -= p->lane_capacity;
    free(p->lanes);
    free(p);
    jobs->processes[i] = jobs->processes[--jobs->count];
}

void jobs_free(struct jobs *jobs)
{
    if (jobs == NULL) {
        return;
    }
    while (jobs->count > 0) {
        forget(jobs, jobs->count - 1);
    }
    for (uint32_t i = 0; i < jobs->folder_count; i++) {
        if (jobs->listing[i] != NULL) {
            closedir(jobs->listing[i]);
        }
    }
    free(jobs);
}

/* -- finding -------------------------------------------------------------------------------- */

static bool is_page_name(const char *name)
{
    const size_t size = strlen(name), suffix = strlen(JOB_PAGE_SUFFIX);

    return size < sizeof(((struct job_process *)0)->file) && size > suffix &&
           strncmp(name, JOB_PAGE_PREFIX, strlen(JOB_PAGE_PREFIX)) == 0 &&
           strcmp(name + size - suffix, JOB_PAGE_SUFFIX) == 0;
}

static struct job_process *find(const struct jobs *jobs, const struct stat *status)
{
    for (uint32_t i = 0; i < jobs->count; i++) {
        struct job_process *p = jobs->processes[i];
        if ((p->fd >= 0 || p->left) && p->inode == status->st_ino && p->device == status->st_dev) {
            return p;
        }
    }
    return NULL;
}

/* Makes room for one more process of that user: forgets the process that ended first, if it must. */
static bool make_room(struct jobs *jobs, uid_t user)
{
    uint32_t of_user = 0, oldest = UINT32_MAX, oldest_of_user = UINT32_MAX;

    for (uint32_t i = 0; i < jobs->count; i++) {
        const struct job_process *p = jobs->processes[i];
        const bool gone = p->fd < 0;
        of_user += p->user == user;
        if (gone &&
            (oldest == UINT32_MAX || mono_before(p->ended, jobs->processes[oldest]->ended))) {
            oldest = i;
        }
        if (gone && p->user == user &&
            (oldest_of_user == UINT32_MAX ||
             mono_before(p->ended, jobs->processes[oldest_of_user]->ended))) {
            oldest_of_user = i;
        }
    }
    if (of_user >= JOB_PROCESS_OF_USER_MAX) {
        oldest = oldest_of_user;
    } else if (jobs->count < JOB_PROCESS_MAX) {
        return true;
    }
    if (oldest == UINT32_MAX) {
        return false;
    }
    forget(jobs, oldest);
    return true;
}

static void add(struct jobs *jobs, struct mono now, uint32_t folder, int folder_fd,
                const char *name)
{
    struct job_process *p = NULL;
    struct stat status;
    /* A file's name may point to another file a moment later. So all checks use the opened file. */
    const int fd = openat(folder_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0) {
        return;
    }
    if (fstat(fd, &status) < 0 || find(jobs, &status) != NULL) {
        close(fd);
        return;
    }
    if (S_ISREG(status.st_mode) && status.st_size == (off_t)sizeof(struct job_page_memory) &&
        make_room(jobs, status.st_uid)) {
        p = calloc(1, sizeof(*p));
    }
    if (p == NULL) {
        jobs->refused++;
        close(fd);
        return;
    }
    p->fd = fd;
    p->folder = (uint8_t)folder;
    p->device = status.st_dev;
    p->inode = status.st_ino;
    p->user = status.st_uid;
    p->seen = p->changed = now;
    snprintf(p->file, sizeof(p->file), "%s", name);
    jobs->processes[jobs->count++] = p;
}

/* Any user may put files into the folder. If one look has no time for all entries, the next look goes on after them. So no
 * user can hide another user's page. */
static void list_folder(struct jobs *jobs, struct mono now, uint32_t i)
{
    DIR *folder = jobs->listing[i] != NULL ? jobs->listing[i] : opendir(jobs->folders[i]);
    const struct dirent *entry = NULL;

    for (int k = 0; folder != NULL && k < ENTRIES_MAX; k++) {
        entry = readdir(folder);
        if (entry == NULL) {
            break;
        }
        if (is_page_name(entry->d_name)) {
            add(jobs, now, i, dirfd(folder), entry->d_name);
        }
    }
    jobs->listing[i] = entry != NULL ? folder : NULL;
    if (folder != NULL && entry == NULL) {
        closedir(folder);
    }
}

static void list(struct jobs *jobs, struct mono now)
{
    for (uint32_t i = 0; i < jobs->folder_count; i++) {
        list_folder(jobs, now, i);
    }
    for (uint32_t i = jobs->count; i-- > 0;) {
        const struct job_process *p = jobs->processes[i];
        if (p->fd < 0 && mono_sub(now, p->ended).ns > JOBS_ENDED_NS) {
            forget(jobs, i);
        }
    }
}

/* -- a fair choice ---------------------------------------------------------------------------- */

/* Index of this process among the processes of its user; the first has 0. */
static uint32_t nth_of_user(const struct jobs *jobs, uint32_t i)
{
    const struct job_process *p = jobs_get(jobs, i);
    uint32_t nth = 0;

    for (uint32_t k = 0; k < i; k++) {
        nth += jobs_get(jobs, k)->known && jobs_get(jobs, k)->user == p->user;
    }
    return nth;
}

uint32_t jobs_fair(const struct jobs *jobs, uint32_t most, const struct job_process **ret)
{
    uint32_t nth[JOB_PROCESS_MAX], count = 0, known = 0;
    const uint32_t all = jobs_count(jobs);

    for (uint32_t i = 0; i < all; i++) {
        known += jobs_get(jobs, i)->known;
        nth[i] = jobs_get(jobs, i)->known ? nth_of_user(jobs, i) : UINT32_MAX;
    }
    known = known < most ? known : most;
    for (uint32_t round = 0; count < known; round++) {
        for (uint32_t i = 0; i < all && count < known; i++) {
            if (nth[i] == round) {
                ret[count++] = jobs_get(jobs, i);
            }
        }
    }
    return count;
}

/* -- reading -------------------------------------------------------------------------------- */

static bool read_bytes(int fd, void *to, size_t size)
{
    return pread(fd, to, size, 0) == (ssize_t)size;
}

/* Size of a page up to the last entry in use. */
static size_t used_size(const struct job_page_header *header)
{
    return offsetof(struct job_page_memory, lanes) +
           (size_t)header->lane_count * sizeof(((struct job_page_memory *)0)->lanes[0]);
}

/* Reads the beginning of the page twice. If both copies are equal, no write was in progress. */
static bool read_page(struct jobs *jobs, int fd, struct job_page_header *ret)
{
    struct job_page_memory *a = &jobs->copies[0], *b = &jobs->copies[1];
    const size_t head = offsetof(struct job_page_memory, lanes);

    if (!read_bytes(fd, a, head) || !job_page_read_header(a, sizeof(*a), ret)) {
        return false;
    }
    return read_bytes(fd, a, used_size(ret)) && read_bytes(fd, b, used_size(ret)) &&
           memcmp(a, b, head) == 0 && job_page_read_header(a, sizeof(*a), ret);
}

static bool room_for_lanes(struct jobs *jobs, struct job_process *p, uint32_t count)
{
    uint32_t capacity = p->lane_capacity;
    struct job_lane *lanes;

    if (count <= capacity) {
        return true;
    }
    capacity = capacity == 0 ? 16 : capacity;
    while (capacity < count) {
        capacity *= 2;
    }
    if (jobs->lanes_kept - p->lane_capacity + capacity > JOB_LANE_KEPT_MAX) {
        return false;
    }
    lanes = realloc(p->lanes, capacity * sizeof(*lanes));
    if (lanes == NULL) {
        return false;
    }
    jobs->lanes_kept += capacity - p->lane_capacity;
    p->lanes = lanes;
    p->lane_capacity = capacity;
    return true;
}

static void take_page(struct jobs *jobs, struct job_process *p, struct mono now)
{
    struct job_page_header header;
    struct job_page_memory *a = &jobs->copies[0], *b = &jobs->copies[1];
    uint32_t count = 0;

    if (!read_page(jobs, p->fd, &header)) {
        /* a write is in progress, or it is no page: the next look tries again; `known` stays */
        return;
    }
    if (p->known && header.written == p->header.written) {
        return;
    }
    for (uint32_t i = 0; i < header.lane_count; i++) {
        struct job_page_lane lane;
        if (memcmp(&a->lanes[i], &b->lanes[i], sizeof(a->lanes[i])) == 0 &&
            job_page_read_lane(a, sizeof(*a), i, &lane) && lane.generation != 0) {
            jobs->fresh[count++].page = lane;
        }
    }
    jobs_compare(jobs, p, &header, jobs->fresh, count, now);
    jobs_class_of_page(jobs, p, count);
    p->lanes_cut = !room_for_lanes(jobs, p, count);
    p->lane_count = p->lanes_cut ? p->lane_capacity : count;
    if (p->lane_count > 0) {
        memcpy(p->lanes, jobs->fresh, p->lane_count * sizeof(*p->lanes));
    }
    p->header = header;
    p->known = true;
    p->changed = now;
}

/* Removes the process's own file, unless another file has its name by now. A file that was never read as a page is removed
 * only from this agent's own folder: /dev/shm is shared by all programs, and a process that is just starting has no lock yet.
 * Returns true if the file is still there. */
static bool remove_page(const struct jobs *jobs, const struct job_process *p)
{
    struct stat status;
    if (p->folder != 0 && !p->known) {
        return false;
    }
    const int folder =
        open(jobs->folders[p->folder], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0) {
        return true;
    }
    const bool same = fstatat(folder, p->file, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
                      status.st_ino == p->inode && status.st_dev == p->device;
    const bool left = same && unlinkat(folder, p->file, 0) < 0;
    close(folder);
    return left;
}

/* Called when no process holds the page's lock: then the process has ended. Unlike a process id, the lock works across PID
 * name spaces and is never used again. */
static void on_death(struct jobs *jobs, struct job_process *p, struct mono now)
{
    struct stat status;
    const bool left = fstat(p->fd, &status) == 0 && status.st_nlink > 0;

    p->ended = now;
    p->rate_in_bps = p->rate_out_bps = 0;
    p->state = left ? JOB_KILLED : JOB_ENDED;
    p->left = left && remove_page(jobs, p);
    close(p->fd);
    p->fd = -1;
    if (p->known) {
        jobs_note_end(jobs, p, now);
    }
}

static bool parted(const struct job_process *p)
{
    /* Lanes of one set are neighbours in the list. */
    for (uint32_t i = 0, next; i < p->lane_count; i = next) {
        bool usable = false;
        for (next = i; next < p->lane_count && p->lanes[next].page.set == p->lanes[i].page.set;
             next++) {
            const uint8_t state = p->lanes[next].page.state;
            usable = usable || (state != LANE_DOWN && state != LANE_CLOSED);
        }
        if (!usable) {
            return true;
        }
    }
    return false;
}

static void look_at(struct jobs *jobs, struct job_process *p, struct mono now)
{
    if (p->fd < 0) {
        return;
    }
    take_page(jobs, p, now);
    if (flock(p->fd, LOCK_SH | LOCK_NB) == 0) {
        /* no process holds the lock: the process has ended */
        (void)flock(p->fd, LOCK_UN);
        take_page(jobs, p, now); /* what the process wrote last */
        on_death(jobs, p, now);
        return;
    }
    p->state = JOB_RUNNING;
    if (mono_sub(now, p->changed).ns > JOBS_IDLE_NS) {
        p->state = JOB_IDLE;
        p->rate_in_bps = p->rate_out_bps = 0;
        for (uint32_t i = 0; i < p->lane_count; i++) {
            p->lanes[i].rate_bps = 0;
        }
    }
    if (parted(p)) {
        p->state = JOB_PARTED;
    }
}

void jobs_poll(struct jobs *jobs, struct mono now, uint32_t pages)
{
    /* if the clock jumps back, look at once */
    if (!mono_before(now, jobs->next_list) || mono_sub(jobs->next_list, now).ns > 2 * LIST_NS) {
        jobs->next_list = mono_add(now, span_ns(LIST_NS));
        list(jobs, now);
        jobs->turn = 0;
    }
    for (; pages > 0 && jobs->turn < jobs->count; pages--) {
        look_at(jobs, jobs->processes[jobs->turn++], now);
    }
}

void jobs_look(struct jobs *jobs, struct mono now)
{
    list(jobs, now);
    jobs->next_list = mono_add(now, span_ns(LIST_NS));
    for (jobs->turn = 0; jobs->turn < jobs->count; jobs->turn++) {
        look_at(jobs, jobs->processes[jobs->turn], now);
    }
}

/* -- reports -------------------------------------------------------------------------------- */

uint32_t jobs_count(const struct jobs *jobs)
{
    return jobs->count;
}

const struct job_process *jobs_get(const struct jobs *jobs, uint32_t index)
{
    ASSERT(index < jobs->count);
    return jobs->processes[index];
}

uint64_t jobs_refused(const struct jobs *jobs)
{
    return jobs->refused;
}
