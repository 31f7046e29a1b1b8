/* keys.c: the fleet's key file. */
#include "service/agent/config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int say(struct config_error *error, const char *path, unsigned line, unsigned column,
               const char *expected)
{
    snprintf(error->text, sizeof(error->text), "%s:%u:%u: expected %s, found something else", path,
             line, column, expected);
    return -EINVAL;
}

static int parse_line(const char *path, unsigned number, const char *line, struct agent_keys *keys,
                      struct config_error *error)
{
    uint32_t id = 0;
    char hex[64] = "", when[64] = "";
    struct tm tm = {0};
    size_t size = 0;
    if (sscanf(line, " key %" SCNu32 " %63s %63s", &id, hex, when) != 3 || id == 0) {
        sodium_memzero(hex, sizeof(hex));
        return say(error, path, number, 1, "'key ID HEX NOT-BEFORE' with an ID above 0");
    }
    const char *end = strptime(when, "%Y-%m-%dT%H:%M:%SZ", &tm);
    if (end == NULL || *end != 0) {
        sodium_memzero(hex, sizeof(hex));
        return say(error, path, number, 1, "a time like 2025-01-31T00:00:00Z in the last field");
    }
    if (keys->count == AGENT_KEY_MAX) {
        sodium_memzero(hex, sizeof(hex));
        return say(error, path, number, 1, "at most two keys");
    }
    struct probe_key *key = &keys->keys[keys->count];
    const bool good =
        strlen(hex) == 2 * PROBE_KEY_SIZE &&
        sodium_hex2bin(key->bytes, sizeof(key->bytes), hex, strlen(hex), NULL, &size, NULL) == 0 &&
        size == PROBE_KEY_SIZE;
    sodium_memzero(hex, sizeof(hex));
    if (!good) {
        return say(error, path, number, 1, "32 hexadecimal digits in the third field");
    }
    key->id = id;
    keys->not_before[keys->count++] = timegm(&tm);
    return 0;
}

static int read_lines(const char *path, FILE *file, struct agent_keys *keys,
                      struct config_error *error)
{
    char line[256];
    int r = 0;
    for (unsigned number = 1; r == 0 && fgets(line, sizeof(line), file) != NULL; number++) {
        const char *start = line + strspn(line, " \t\r\n");
        if (*start != '#' && *start != 0) {
            r = parse_line(path, number, line, keys, error);
        }
    }
    sodium_memzero(line, sizeof(line));
    if (r == 0 && keys->count == 0) {
        r = say(error, path, 1, 1, "a line 'key ID HEX NOT-BEFORE' (foliot keygen writes it)");
    }
    if (r == 0 && keys->count == 2 && keys->keys[0].id == keys->keys[1].id) {
        r = say(error, path, 2, 1, "two different key ids");
    }
    return r;
}

int agent_keys_load(const char *path, struct agent_keys *ret_keys, struct config_error *error)
{
    struct agent_keys keys = {0};
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) < 0) {
        const int r = -errno;
        snprintf(error->text, sizeof(error->text), "%s: expected a readable key file, found: %s",
                 path, strerror(-r));
        if (fd >= 0) {
            close(fd);
        }
        return r;
    }
    if ((st.st_mode & 077) != 0) {
        close(fd);
        snprintf(error->text, sizeof(error->text),
                 "%s: expected mode 0600, found %04o: chmod 0600 %s", path,
                 (unsigned)st.st_mode & 07777, path);
        return -EPERM;
    }
    FILE *file = fdopen(fd, "r");
    if (file == NULL) {
        close(fd);
        snprintf(error->text, sizeof(error->text), "%s: out of memory", path);
        return -ENOMEM;
    }
    const int r = read_lines(path, file, &keys, error);
    fclose(file);
    if (r == 0) {
        if (keys.count == 2 && keys.not_before[0] > keys.not_before[1]) {
            const struct agent_keys swap = keys;
            keys.keys[0] = swap.keys[1];
            keys.keys[1] = swap.keys[0];
            keys.not_before[0] = swap.not_before[1];
            keys.not_before[1] = swap.not_before[0];
        }
        *ret_keys = keys;
    }
    sodium_memzero(&keys, sizeof(keys));
    return r;
}
