/* machine.c: processes, namespaces and files. The netlink half is filter.c. */
#include "lab/machine.h"
#include "base/time.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NETNS_FOLDER "/run/netns"
#define LISTEN_FD    3 /* the first socket's number in systemd's protocol */

int machine_enter_network(const char *space)
{
    char path[128];
    snprintf(path, sizeof(path), NETNS_FOLDER "/%s", space);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    int r = setns(fd, CLONE_NEWNET) < 0 ? -errno : 0;
    close(fd);
    return r;
}

int machine_enter(const char *space)
{
    int r = machine_enter_network(space);
    if (r < 0) {
        return r;
    }
    /* As `ip netns exec` does: /sys/class/net shows the namespace of the process that mounted it. */
    if (unshare(CLONE_NEWNS) < 0 || mount("", "/", "none", MS_SLAVE | MS_REC, NULL) < 0) {
        return -errno;
    }
    umount2("/sys", MNT_DETACH);
    return mount(space, "/sys", "sysfs", 0, NULL) < 0 ? -errno : 0;
}

static int input_fd(const char *input)
{
    if (input == NULL) {
        return open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
    FILE *f = tmpfile();
    if (f == NULL) {
        return -1;
    }
    int fd = -1;
    if (fputs(input, f) >= 0 && fflush(f) == 0) {
        fd = fcntl(fileno(f), F_DUPFD_CLOEXEC, 3);
    }
    fclose(f);
    if (fd >= 0) {
        lseek(fd, 0, SEEK_SET);
    }
    return fd;
}

static int wait_for(pid_t pid, int failed)
{
    int status;
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) {
            return -errno;
        }
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : failed;
}

int machine_run(const char *const *argv, const char *input)
{
    int fd = input_fd(input);
    if (fd < 0) {
        return -EIO;
    }
    pid_t pid = fork();
    if (pid == 0) {
        dup2(fd, STDIN_FILENO);
        execvp(argv[0], (char *const *)argv);
        fprintf(stderr, "foliot lab: cannot run %s: %s\n", argv[0], strerror(errno));
        _exit(127);
    }
    close(fd);
    return pid < 0 ? -errno : wait_for(pid, -EIO);
}

int machine_fork_away(void)
{
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        const pid_t away = fork();
        if (away == 0) {
            return 0;
        }
        _exit(away < 0 ? 1 : 0);
    }
    const int r = pid < 0 ? -errno : wait_for(pid, -ECHILD);
    return r < 0 ? r : 1;
}

/* Sets the variables that systemd's sd_listen_fds(3) reads. */
static void hand_over(int socket)
{
    char pid[16];
    snprintf(pid, sizeof(pid), "%d", (int)getpid());
    setenv("LISTEN_PID", pid, 1);
    setenv("LISTEN_FDS", "1", 1);
    setenv("LISTEN_FDNAMES", "api", 1);
    if (socket == LISTEN_FD) {
        (void)fcntl(LISTEN_FD, F_SETFD, 0);
    } else {
        dup2(socket, LISTEN_FD);
    }
}

_Noreturn static void become(const struct machine_task *task)
{
    if (task->stays) {
        sigset_t none;
        sigemptyset(&none);
        /* a fault's helper blocks signals that an agent needs */
        sigprocmask(SIG_SETMASK, &none, NULL);
        setsid();
    }
    const int r = task->enter == NULL ? 0 : task->enter(task->data);
    const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (r < 0 || null < 0) {
        fprintf(stderr, "foliot lab: %s: %s\n", task->argv[0], strerror(r < 0 ? -r : errno));
        _exit(1);
    }
    dup2(null, STDIN_FILENO);
    if (task->output != NULL) {
        dup2(*task->output, STDOUT_FILENO);
        dup2(*task->output, STDERR_FILENO);
    }
    if (task->socket != NULL) {
        hand_over(*task->socket);
    }
    execvp(task->argv[0], (char *const *)task->argv);
    fprintf(stderr, "foliot lab: cannot run %s: %s\n", task->argv[0], strerror(errno));
    _exit(127);
}

int machine_spawn(const struct machine_task *task)
{
    if (task->stays) {
        const int r = machine_fork_away();
        if (r == 0) {
            become(task);
        }
        return r < 0 ? r : 0;
    }
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        become(task);
    }
    return pid < 0 ? -errno : wait_for(pid, -ECHILD);
}

int machine_write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) {
        return -errno;
    }
    size_t size = strlen(text);
    ssize_t n = write(fd, text, size);
    int r = n < 0 ? -errno : (size_t)n == size ? 0 : -EIO;
    close(fd);
    return r;
}

int machine_sysctl(const char *value, const char *format, ...)
{
    char path[256] = "/proc/sys/";
    size_t used = strlen(path);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(path + used, sizeof(path) - used, format, arguments);
    va_end(arguments);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    int r = write(fd, value, strlen(value)) < 0 ? -errno : 0;
    close(fd);
    return r;
}

int machine_make_folder(const char *path)
{
    return mkdir(path, 0755) < 0 && errno != EEXIST ? -errno : 0;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    remove(path);
    return 0;
}

void machine_remove_tree(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

int machine_signal_space(const char *space, int signal)
{
    char path[300];
    struct stat wanted;
    snprintf(path, sizeof(path), NETNS_FOLDER "/%s", space);
    if (stat(path, &wanted) < 0) {
        return 0;
    }
    DIR *folder = opendir("/proc");
    int count = 0;
    for (struct dirent *e; folder != NULL && (e = readdir(folder)) != NULL;) {
        const int pid = (int)strtol(e->d_name, NULL, 10);
        struct stat st;
        snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
        if (pid > 0 && pid != getpid() && stat(path, &st) == 0 && st.st_ino == wanted.st_ino &&
            st.st_dev == wanted.st_dev && kill(pid, signal) == 0) {
            count++;
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return count;
}

void machine_each_space(const char *prefix, void (*visit)(const char *space, void *data),
                        void *data)
{
    DIR *folder = opendir(NETNS_FOLDER);
    for (struct dirent *e; folder != NULL && (e = readdir(folder)) != NULL;) {
        if (strncmp(e->d_name, prefix, strlen(prefix)) == 0) {
            visit(e->d_name, data);
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
}

int64_t machine_clock_ns(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return t.tv_sec * NS_PER_S + t.tv_nsec;
}

int machine_link_wait(const char *interface, int64_t timeout_ns)
{
    struct ifreq request = {0};
    snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", interface);
    int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int r = s < 0 ? -errno : 0;
    int64_t end_ns = machine_clock_ns(CLOCK_MONOTONIC_RAW) + timeout_ns;
    while (r == 0) {
        r = ioctl(s, SIOCGIFFLAGS, &request) != 0 ? -errno : 0;
        if (r == 0 && (request.ifr_flags & IFF_RUNNING) != 0) {
            break;
        }
        r = r == 0 && machine_clock_ns(CLOCK_MONOTONIC_RAW) > end_ns ? -ETIMEDOUT : r;
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    if (s >= 0) {
        close(s);
    }
    return r;
}
