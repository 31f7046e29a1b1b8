/* foliot_audit_sheets.c: gets sheets from files, from folders and from foliot-inspect, and judges them. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <libgen.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "app/foliot_audit.h"
#include "app/foliot_command.h"
#include "app/foliot_foreign.h"
#include "service/audit/judged.h"
#include "service/audit/sheet_json.h"
#include "service/inspect/inspect.h"

#define INSPECT_SOCKET "/run/foliot-inspect.sock"

enum { SHEETS_MAX = 4096, SHEET_FILE_MAX = 8 << 20 };

extern char **environ;

/* Adds the sheet; the list owns it from now on. */
static int add(struct audit_sheets *s, struct sheet *sheet)
{
    if (s->count == s->capacity) {
        const uint32_t capacity = s->capacity == 0 ? 16 : s->capacity * 2;
        struct sheet *all = realloc(s->all, capacity * sizeof(*all));
        struct sheet **owned = realloc(s->owned, capacity * sizeof(*owned));
        s->all = all != NULL ? all : s->all;
        s->owned = owned != NULL ? owned : s->owned;
        if (all == NULL || owned == NULL || capacity > SHEETS_MAX) {
            sheet_free(sheet);
            fprintf(stderr, "foliot audit: too many sheets: at most %d\n", SHEETS_MAX);
            return EXIT_USAGE;
        }
        s->capacity = capacity;
    }
    s->owned[s->count] = sheet;
    s->all[s->count++] = *sheet;
    return EXIT_WELL;
}

int sheets_add_json(struct audit_sheets *s, const json_t *tree, const char *name)
{
    const char *why = "out of memory";
    struct sheet *sheet = sheet_new();
    const int r = sheet == NULL ? -ENOMEM : sheet_read(tree, sheet, &why);

    if (r < 0) {
        fprintf(stderr, "foliot audit: %s: %s\n", foreign_text(name).text, why);
        sheet_free(sheet);
        return r == -EINVAL ? EXIT_USAGE : EXIT_UNREACHABLE;
    }
    for (uint32_t i = 0; i < s->count; i++) {
        if (strcmp(s->all[i].host, sheet->host) == 0) {
            fprintf(stderr, "foliot audit: %s: a second sheet of host %s\n",
                    foreign_text(name).text, foreign_text(sheet->host).text);
            sheet_free(sheet);
            return EXIT_USAGE;
        }
    }
    sheet_shrink(sheet);
    return add(s, sheet);
}

static int load_file(struct audit_sheets *s, const char *path)
{
    json_error_t error;
    json_t *tree = json_load_file(path, 0, &error);

    if (tree == NULL) {
        fprintf(stderr, "foliot audit: %s: expected a sheet of facts in JSON, found: %s\n",
                foreign_text(path).text, foreign_text(error.text).text);
        return error.line < 0 ? EXIT_UNREACHABLE : EXIT_USAGE;
    }
    const int status = sheets_add_json(s, tree, path);
    json_decref(tree);
    return status;
}

static int is_sheet(const struct dirent *entry)
{
    const size_t n = strlen(entry->d_name);

    return entry->d_name[0] != '.' && n > 5 && strcmp(entry->d_name + n - 5, ".json") == 0;
}

int sheets_load(struct audit_sheets *s, const char *path)
{
    char file[PATH_MAX];
    struct dirent **entries;
    struct stat status;
    int result = EXIT_WELL;

    if (stat(path, &status) < 0) {
        fprintf(stderr, "foliot audit: %s: %s\n", foreign_text(path).text, strerror(errno));
        return EXIT_UNREACHABLE;
    }
    if (!S_ISDIR(status.st_mode)) {
        return load_file(s, path);
    }
    const int count = scandir(path, &entries, is_sheet, versionsort);
    if (count <= 0) {
        fprintf(stderr,
                "foliot audit: %s: expected files *.json from `foliot audit facts`, found none\n",
                foreign_text(path).text);
        return EXIT_UNREACHABLE;
    }
    for (int i = 0; i < count; i++) {
        if (result == EXIT_WELL) {
            snprintf(file, sizeof(file), "%s/%s", path, entries[i]->d_name);
            result = load_file(s, file);
        }
        free(entries[i]);
    }
    free(entries);
    return result;
}

/* ---- foliot-inspect ---- */

/* Finds foliot-inspect: next to this program, else in PATH. */
static void find_program(char path[PATH_MAX])
{
    static const char name[] = "foliot-inspect";
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - sizeof(name));

    path[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(path, '/');
    if (slash != NULL) {
        memcpy(slash + 1, name, sizeof(name));
    }
    if (slash == NULL || access(path, X_OK) != 0) {
        memcpy(path, name, sizeof(name));
    }
}

static int connect_socket(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = INSPECT_SOCKET};
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
        close(fd);
        return -errno;
    }
    return fd;
}

/* root, capture: folders for its options; NULL: without the option. */
static int spawn(const char *root, const char *capture, pid_t *ret_child)
{
    static char of_root[] = "--root", of_capture[] = "--capture";
    char program[PATH_MAX], folder[PATH_MAX], kept[PATH_MAX];
    char *arguments[6] = {program};
    posix_spawn_file_actions_t actions;
    int pipes[2], count = 1;

    find_program(program);
    if (root != NULL) {
        snprintf(folder, sizeof(folder), "%s", root);
        arguments[count++] = of_root;
        arguments[count++] = folder;
    }
    if (capture != NULL) {
        snprintf(kept, sizeof(kept), "%s", capture);
        arguments[count++] = of_capture;
        arguments[count++] = kept;
    }
    if (pipe(pipes) < 0) {
        return -errno;
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pipes[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, pipes[0]);
    posix_spawn_file_actions_addclose(&actions, pipes[1]);
    const int r = posix_spawnp(ret_child, program, &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(pipes[1]);
    if (r != 0) {
        close(pipes[0]);
    }
    return r != 0 ? -r : pipes[0];
}

static char *read_all(int fd, size_t *ret_size)
{
    char *text = malloc(SHEET_FILE_MAX + 1);
    size_t used = 0;
    ssize_t n = 1;

    while (text != NULL && used < SHEET_FILE_MAX &&
           ((n = read(fd, text + used, SHEET_FILE_MAX - used)) > 0 || (n < 0 && errno == EINTR))) {
        used += n > 0 ? (size_t)n : 0;
    }
    if (text != NULL) {
        text[used] = '\0';
    }
    *ret_size = used;
    return text;
}

char *sheets_inspect_text(const char *root, size_t *ret_size)
{
    return sheets_capture_text(root, NULL, ret_size);
}

char *sheets_capture_text(const char *root, const char *folder, size_t *ret_size)
{
    pid_t child = 0;
    int status = 0, fd = root == NULL && folder == NULL ? connect_socket() : -ENOENT;

    if (fd < 0) {
        fd = spawn(root, folder, &child);
    }
    if (fd < 0) {
        fprintf(stderr, "foliot audit: expected foliot-inspect beside foliot or in the path: %s\n",
                strerror(-fd));
        return NULL;
    }
    char *text = read_all(fd, ret_size);
    close(fd);
    if (child > 0) {
        (void)waitpid(child, &status, 0);
    }
    if (text == NULL || *ret_size == 0 || status != 0) {
        fputs("foliot audit: foliot-inspect gave no sheet\n", stderr);
        free(text);
        return NULL;
    }
    return text;
}

/* Writes a file and renames it, because two programs may do it at once. If that fails, the next caller reads the host again. */
static void keep(const char *file, const char *text, size_t size)
{
    char next[PATH_MAX], folder[PATH_MAX];

    snprintf(folder, sizeof(folder), "%s", file);
    (void)mkdir(dirname(folder), 0700);
    if (snprintf(next, sizeof(next), "%s.%d", file, (int)getpid()) >= (int)sizeof(next)) {
        return;
    }
    const int fd = open(next, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    const bool whole = fd >= 0 && write(fd, text, size) == (ssize_t)size;
    if (fd >= 0) {
        close(fd);
    }
    if (fd >= 0 && (!whole || rename(next, file) < 0)) {
        unlink(next);
    }
}

bool sheets_known(struct audit_sheets *s, const char *file, int age_s)
{
    const int fd = open(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat status;

    if (fd < 0) {
        return false;
    }
    if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || status.st_uid != geteuid() ||
        (status.st_mode & (S_IWGRP | S_IWOTH)) != 0 || status.st_mtime > time(NULL) ||
        time(NULL) - status.st_mtime > age_s) {
        close(fd);
        return false;
    }
    json_t *tree = json_loadfd(fd, 0, NULL);
    const bool known = tree != NULL && sheets_add_json(s, tree, file) == EXIT_WELL;
    json_decref(tree);
    close(fd);
    return known;
}

int sheets_inspect(struct audit_sheets *s, const char *root, const char *file)
{
    size_t size;
    char *text = sheets_inspect_text(root, &size);
    json_t *tree = text != NULL ? json_loadb(text, size, 0, NULL) : NULL;
    int status = EXIT_UNREACHABLE;

    if (tree != NULL) {
        status = sheets_add_json(s, tree, "foliot-inspect");
        if (status == EXIT_WELL && file != NULL) {
            keep(file, text, size);
        }
    } else if (text != NULL) {
        fputs("foliot audit: foliot-inspect gave no JSON\n", stderr);
    }
    json_decref(tree);
    free(text);
    return status;
}

void sheets_done(struct audit_sheets *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        sheet_free(s->owned[i]);
    }
    free(s->all);
    free(s->owned);
    *s = (struct audit_sheets){0};
}

/* ---- judging ---- */

int audited(struct audit *a, const struct audit_sheets *sheets,
            const struct audit_settings *settings)
{
    if (judged(a, sheets->all, sheets->count, settings) < 0) {
        fputs("foliot audit: out of memory\n", stderr);
        return EXIT_UNREACHABLE;
    }
    return EXIT_WELL;
}

void audited_done(struct audit *a)
{
    judged_done(a);
}
