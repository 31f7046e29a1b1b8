/* collect.c: see collect.h. */
#include "service/inspect/collect.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/plain.h"

void put(struct collector *c, enum fact_id id, const char *subject, const char *value,
         const char *source)
{
    sheet_add(c->sheet, &(struct fact){.id = (uint16_t)id,
                                       .state = FACT_VALUE,
                                       .subject = subject,
                                       .value = value,
                                       .source = source != NULL ? source : ""});
}

void put_number(struct collector *c, enum fact_id id, const char *subject, int64_t value,
                const char *source)
{
    char text[32];

    snprintf(text, sizeof(text), "%lld", (long long)value);
    put(c, id, subject, text, source);
}

int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

enum fact_state state_of(int error)
{
    switch (-error) {
    case ENOENT:
    case ENOTDIR:
    case ENODEV:
    case ENXIO:
        return FACT_ABSENT;
    case EACCES:
    case EPERM:
        return FACT_NO_PERMISSION;
    case EBADMSG:
    case EILSEQ:
    case EMSGSIZE:
        return FACT_GARBLED;
    case ETIMEDOUT:
        return FACT_TIMEOUT;
    default:
        return FACT_UNREADABLE;
    }
}

/* The reason in words, for people; it stands beside the state's name. */
static const char *words_of(int error)
{
    switch (-error) {
    case EBADMSG:
    case EILSEQ:
        return "";
    case EMSGSIZE:
        return "it is longer than the limit";
    case ECONNREFUSED:
        return "the agent does not answer";
    default:
        return strerror(-error);
    }
}

void put_error(struct collector *c, enum fact_id id, const char *subject, int error,
               const char *source)
{
    sheet_add(c->sheet, &(struct fact){.id = (uint16_t)id,
                                       .state = (uint8_t)state_of(error),
                                       .subject = subject,
                                       .value = words_of(error),
                                       .source = source != NULL ? source : ""});
}

bool is_text(const char *text, size_t size)
{
    if (strlen(text) != size) {
        return false;
    }
    while (*text != '\0') {
        const size_t n = *text == '\n' || *text == '\t' ? 1 : plain_length(text);
        if (n == 0) {
            return false;
        }
        text += n;
    }
    return true;
}

int collect_bytes(struct collector *c, const char *path)
{
    const int fd = sysfs_fd(c->tree, path, O_RDONLY);
    size_t size = 0;
    ssize_t n = fd;

    c->text[0] = '\0';
    if (fd < 0) {
        return fd;
    }
    while (size < FILE_MAX && (n = read(fd, c->text + size, FILE_MAX - size)) != 0) {
        if (n < 0 && errno != EINTR) {
            n = -errno;
            close(fd);
            return (int)n;
        }
        size += n > 0 ? (size_t)n : 0;
    }
    close(fd);
    c->text[size] = '\0';
    return size == FILE_MAX ? -EMSGSIZE : (int)size;
}

int collect_file(struct collector *c, const char *path)
{
    const int size = collect_bytes(c, path);

    return size < 0                                 ? size
           : size == 0 || c->text[size - 1] != '\n' ? -EBADMSG
           : !is_text(c->text, (size_t)size)        ? -EILSEQ
                                                    : size;
}

int collect_line(struct collector *c, const char *path, char *ret, size_t size)
{
    int n = collect_file(c, path);

    if (n < 0) {
        return n;
    }
    while (n > 0 && (c->text[n - 1] == '\n' || c->text[n - 1] == ' ')) {
        c->text[--n] = '\0';
    }
    if ((size_t)n >= size || strchr(c->text, '\n') != NULL) {
        return -EBADMSG;
    }
    memcpy(ret, c->text, (size_t)n + 1);
    return n;
}

int collect_number(struct collector *c, const char *path, int64_t *ret)
{
    char line[64];
    const int r = collect_line(c, path, line, sizeof(line));

    return r < 0 ? r : fact_number(line, ret) ? 0 : -EBADMSG;
}

char *next_line(struct collector *c, char **cursor)
{
    char *line = *cursor == NULL ? c->text : *cursor, *end;

    if (*line == '\0') {
        return NULL;
    }
    end = strchr(line, '\n');
    if (end != NULL) {
        *end = '\0';
        *cursor = end + 1;
    } else {
        *cursor = line + strlen(line);
    }
    return line;
}

void put_file(struct collector *c, enum fact_id id, const char *subject, const char *path)
{
    char line[FACT_VALUE_MAX];
    const int r = path == NULL ? -ENAMETOOLONG : collect_line(c, path, line, sizeof(line));

    if (r < 0) {
        put_error(c, id, subject, r, path);
    } else {
        put(c, id, subject, line, path);
    }
}

struct names *names_of(struct collector *c, const char *folder)
{
    struct names *names = malloc(sizeof(*names));

    if (names == NULL) {
        abort(); /* this is a child: its parent reports the failure */
    }
    names->count =
        folder == NULL ? -ENAMETOOLONG : sysfs_names(c->tree, folder, names->name, NAMES_MAX);
    return names;
}

int collect_link(struct collector *c, const char *path, char *ret, size_t size)
{
    char real[1024];
    const int n = sysfs_real(c->tree, path, real, sizeof(real));
    const char *last;

    if (n < 0) {
        return n;
    }
    last = strrchr(real, '/');
    last = last != NULL ? last + 1 : real;
    if (strlen(last) >= size) {
        return -ENAMETOOLONG;
    }
    memcpy(ret, last, strlen(last) + 1);
    return 0;
}

void put_attributes(struct collector *c, const struct attribute *attributes, size_t count,
                    const char *subject, const char *folder)
{
    char path[SYSFS_PATH_SIZE];

    for (size_t i = 0; i < count; i++) {
        put_file(c, attributes[i].id, subject,
                 sysfs_path(path, "%s/%s", folder, attributes[i].file));
    }
}
