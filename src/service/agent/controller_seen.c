/* controller_seen.c: see controller_seen.h. The file has the time of the controller's last answer by the host's clock (s,
 * UTC), a blank, and the token in hex. */
#include "service/agent/controller_seen.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/time.h"
#include "platform/tls/tls.h"

void controller_seen_open(struct controller_seen *s, const char *state_dir, int64_t now_ns)
{
    char *text = NULL, hex[2 * CONTROLLER_TOKEN_MAX + 1] = "";
    int64_t at_s = 0;
    *s = (struct controller_seen){.at_ns = now_ns};
    snprintf(s->path, sizeof(s->path), "%s/controller.seen", state_dir);
    if (tls_read_file(s->path, &text) == 0 && sscanf(text, "%" SCNd64 " %128s", &at_s, hex) == 2) {
        unsigned byte = 0;
        while (s->size < CONTROLLER_TOKEN_MAX && sscanf(hex + 2 * s->size, "%2x", &byte) == 1) {
            s->token[s->size++] = (uint8_t)byte;
        }
        const int64_t ago_s = time(NULL) - at_s;
        /* If the clock is behind the file's time, the age is not known. Then a very long time is assumed, which leads to no
         * accusation. */
        s->at_ns -= (ago_s >= 0 && ago_s < INT32_MAX ? ago_s : INT32_MAX) * NS_PER_S;
    }
    free(text);
}

int controller_seen_save(const struct controller_seen *s, int64_t now_ns)
{
    char text[32 + 2 * CONTROLLER_TOKEN_MAX];
    if (s->size == 0) {
        return 0;
    }
    int used = snprintf(text, sizeof(text), "%lld ",
                        (long long)time(NULL) - (long long)((now_ns - s->at_ns) / NS_PER_S));
    for (size_t i = 0; i < s->size; i++) {
        used += snprintf(text + used, sizeof(text) - (size_t)used, "%02x", s->token[i]);
    }
    return tls_write_file(s->path, text, (size_t)used, 0600);
}

int controller_seen_take(struct controller_seen *s, const void *token, size_t size, int64_t now_ns)
{
    if (size == 0 || size > CONTROLLER_TOKEN_MAX) {
        return 0; /* an older controller sends no token */
    }
    const size_t start = size < CONTROLLER_TOKEN_START ? size : CONTROLLER_TOKEN_START;
    const bool other = size != s->size || memcmp(s->token, token, start) != 0;
    memcpy(s->token, token, size);
    s->size = size;
    s->at_ns = now_ns;
    return other ? controller_seen_save(s, now_ns) : 0;
}

uint64_t controller_seen_ago_ms(const struct controller_seen *s, int64_t now_ns)
{
    const int64_t ago = (now_ns - s->at_ns) / NS_PER_MS;
    return s->size == 0 ? 0 : ago > 0 ? (uint64_t)ago : 1;
}
