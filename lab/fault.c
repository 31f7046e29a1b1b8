/* fault.c: a fault's helper process, and the fault's state on disk. */
#include "lab/fault.h"

#include "base/time.h"
#include "lab/machine.h"
#include "lab/relay.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

int64_t lab_raw_ns(void)
{
    return machine_clock_ns(CLOCK_MONOTONIC_RAW);
}

static void state_file(const struct lab *lab, int id, char ret_file[LAB_TEXT_SIZE + 64])
{
    snprintf(ret_file, LAB_TEXT_SIZE + 64, "%s/fault/%d", lab->folder, id);
}

static void *file_map(const char *file, size_t size, bool is_new)
{
    int fd = open(file, O_RDWR | O_CLOEXEC | (is_new ? O_CREAT | O_EXCL : 0), 0644);
    if (fd < 0) {
        return NULL;
    }
    struct stat st;
    void *p = MAP_FAILED;
    if (is_new ? ftruncate(fd, (off_t)size) == 0
               : fstat(fd, &st) == 0 && (size_t)st.st_size == size) {
        p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    int saved = errno;
    close(fd);
    errno = saved;
    return p == MAP_FAILED ? NULL : p;
}

static struct lab_fault *state_map(const struct lab *lab, int id, bool is_new)
{
    char file[LAB_TEXT_SIZE + 64];
    state_file(lab, id, file);
    return file_map(file, sizeof(struct lab_fault), is_new);
}

struct relay_log *lab_relay_map(const struct lab *lab, int id, int spot, bool is_new)
{
    char file[LAB_TEXT_SIZE + 64];
    snprintf(file, sizeof(file), "%s/relay-%d-%d", lab->folder, id, spot);
    return file_map(file, sizeof(struct relay_log), is_new);
}

void lab_event(const struct lab *lab, const struct lab_fault *state, const char *what,
               int64_t before_raw_ns)
{
    char file[LAB_TEXT_SIZE + 32];
    char target[LAB_TEXT_SIZE];
    char line[1024];
    snprintf(file, sizeof(file), "%s/events", lab->folder);
    scenario_target_text(&state->fault.target, target, sizeof(target));
    int size = snprintf(line, sizeof(line),
                        "{\"fault\":%d,\"kind\":\"%s\",\"target\":\"%s\",\"event\":\"%s\","
                        "\"before_raw_ns\":%lld,\"after_raw_ns\":%lld}\n",
                        state->id, scenario_fault_name(state->fault.kind), target, what,
                        (long long)before_raw_ns, (long long)lab_raw_ns());
    int fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd >= 0) {
        (void)!write(fd, line, (size_t)size);
        close(fd);
    }
}

void lab_fault_ready(struct lab_fault *state)
{
    state->begin_raw_ns = lab_raw_ns();
    state->end_raw_ns = state->fault.for_ns > 0 ? state->begin_raw_ns + state->fault.for_ns : 0;
    __atomic_store_n(&state->is_on, 1, __ATOMIC_RELEASE);
}

static void state_remove(const struct lab *lab, int id)
{
    char file[LAB_TEXT_SIZE + 64];
    state_file(lab, id, file);
    unlink(file);
}

static void become_helper(const struct lab *lab, struct lab_fault *state)
{
    char space[64];
    sigset_t set;
    setsid();
    lab_space(lab, NODE_LEAF, 0, space);
    int r = machine_enter_network(space);
    state->pid = getpid();
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int stop_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    /* The starter may wait for the end of a pipe, so the helper keeps no pipe open. */
    char file[LAB_TEXT_SIZE + 32];
    snprintf(file, sizeof(file), "%s/fault.log", lab->folder);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int log = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    dup2(log < 0 ? null : log, STDERR_FILENO);
    r = r < 0 ? r : stop_fd < 0 ? -errno : lab_fault_play(lab, state, stop_fd);
    if (r < 0 && !state->is_on) {
        __atomic_store_n(&state->error, r, __ATOMIC_RELEASE);
        _exit(1); /* the starter removes the state */
    }
    state_remove(lab, state->id);
    _exit(r < 0 ? 1 : 0);
}

/* A new id, unique in the lab: it identifies events and relay logs. */
static int next_id(const struct lab *lab)
{
    char file[LAB_TEXT_SIZE + 32];
    int id = 0;
    snprintf(file, sizeof(file), "%s/fault-last", lab->folder);
    int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0 || flock(fd, LOCK_EX) < 0) {
        return -errno;
    }
    if (pread(fd, &id, sizeof(id), 0) != (ssize_t)sizeof(id)) {
        id = 0;
    }
    id++;
    int r = id > LAB_FAULT_ID_MAX ? -ENOSPC : pwrite(fd, &id, sizeof(id), 0) < 0 ? -errno : id;
    close(fd);
    return r;
}

static struct lab_fault *state_new(const struct lab *lab)
{
    char folder[LAB_TEXT_SIZE + 32];
    snprintf(folder, sizeof(folder), "%s/fault", lab->folder);
    if (machine_make_folder(folder) < 0) {
        return NULL;
    }
    int id = next_id(lab);
    struct lab_fault *state = id < 0 ? (errno = -id, NULL) : state_map(lab, id, true);
    if (state != NULL) {
        state->id = id;
    }
    return state;
}

static int wait_ready(const struct lab *lab, struct lab_fault *state)
{
    int r = -ETIMEDOUT;
    for (int i = 0; i < 5000; i++) {
        if (__atomic_load_n(&state->is_on, __ATOMIC_ACQUIRE)) {
            r = 0;
            break;
        }
        int error = __atomic_load_n(&state->error, __ATOMIC_ACQUIRE);
        if (error != 0) {
            r = error;
            break;
        }
        usleep(i < 100 ? 100 : 1000);
    }
    if (r < 0) {
        state_remove(lab, state->id);
    }
    return r;
}

/* Filters don't distinguish classes. A shaper can slow down only its low class. */
const char *lab_fault_cannot(const struct scenario_fault *fault)
{
    const bool is_brownout = fault->kind == FAULT_BROWNOUT;

    return fault->kind > FAULT_CLOCK_FREQ && fault->kind != FAULT_SUSPEND
               ? "a fault that only the simulator can cause"
           : fault->kind == FAULT_SUSPEND && !fault->told
               ? "a suspend that the kernel does not notice, which only the simulator can cause"
           : fault->net_class != CLASS_ANY && !is_brownout
               ? "a fault of one class of packets, which only the simulator can cause"
           : fault->net_class == CLASS_CLOCK
               ? "a brown-out of the probes' class, which no shaper can cause"
               : NULL;
}

int lab_fault_start(const struct lab *lab, const struct scenario_fault *fault, int *ret_id)
{
    if (lab_fault_cannot(fault) != NULL) {
        return -EOPNOTSUPP;
    }
    struct lab_fault *state = state_new(lab);
    if (state == NULL) {
        return -errno;
    }
    state->fault = *fault;
    const int parent = machine_fork_away();
    if (parent == 0) {
        become_helper(lab, state);
    }
    int r = parent < 0 ? parent : wait_ready(lab, state);
    if (r == 0 && ret_id != NULL) {
        *ret_id = state->id;
    }
    munmap(state, sizeof(*state));
    return r;
}

int lab_fault_undo(const struct lab *lab, int id)
{
    struct lab_fault *state = state_map(lab, id, false);
    if (state == NULL) {
        return -ENOENT;
    }
    char file[LAB_TEXT_SIZE + 64];
    state_file(lab, id, file);
    int r = 0;
    if (state->pid > 0 && kill(state->pid, SIGTERM) == 0) {
        for (int i = 0; i < 3000 && access(file, F_OK) == 0 && kill(state->pid, 0) == 0; i++) {
            usleep(1000);
        }
    }
    if (access(file, F_OK) == 0) { /* its helper was killed */
        r = lab_fault_unapply(lab, state);
        state_remove(lab, id);
    }
    munmap(state, sizeof(*state));
    return r;
}

static int id_filter(const struct dirent *e)
{
    return e->d_name[0] >= '1' && e->d_name[0] <= '9';
}

void lab_fault_each(const struct lab *lab, void (*visit)(const struct lab_fault *state, void *data),
                    void *data)
{
    char folder[LAB_TEXT_SIZE + 32];
    struct dirent **entry;
    snprintf(folder, sizeof(folder), "%s/fault", lab->folder);
    int count = scandir(folder, &entry, id_filter, versionsort);
    for (int i = 0; i < count; i++) {
        struct lab_fault *state = state_map(lab, (int)strtol(entry[i]->d_name, NULL, 10), false);
        if (state != NULL) {
            visit(state, data);
            munmap(state, sizeof(*state));
        }
        free(entry[i]);
    }
    if (count >= 0) {
        free(entry);
    }
}

void lab_fault_text(const struct scenario_fault *fault, char ret_text[LAB_TEXT_SIZE])
{
    char target[LAB_TEXT_SIZE / 2];
    scenario_target_text(&fault->target, target, sizeof(target));
    snprintf(ret_text, LAB_TEXT_SIZE, "%s %s", scenario_fault_name(fault->kind), target);
}
