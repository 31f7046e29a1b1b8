/* pack.c: compresses an answer for clients that accept it. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>
#include <zstd.h>

#include "platform/http/server_internal.h"

enum {
    PACK_MIN = 1024,       /* smaller answers are not compressed */
    GZIP_MAX = 1 << 20,    /* larger ones would block the loop too long: some 8 ms per MiB */
    ZSTD_MAX = 8 << 20,    /* some 2 ms per MiB */
    GZIP_WINDOW = 15 + 16, /* selects the gzip format in zlib */
    LEVEL = 1,
};

/* True for "q=0", "q=0.0": not accepted. */
static bool is_refused(const char *parameters, size_t size)
{
    const char *q = memmem(parameters, size, "q=", 2);
    const char *end = parameters + size;
    if (q == NULL) {
        return false;
    }
    for (q += 2; q < end && (*q == '0' || *q == '.'); q++) {
    }
    return q == end || *q < '1' || *q > '9';
}

bool http_accepts(const struct http_request *r, const char *encoding)
{
    const char *at = http_header(r, "Accept-Encoding");
    const size_t length = strlen(encoding);
    for (; at != NULL && *at != 0; at += *at == ',') {
        at += strspn(at, " \t");
        const size_t size = strcspn(at, ","), name = strcspn(at, ",; \t");
        if (name == length && strncasecmp(at, encoding, length) == 0) {
            return !is_refused(at + name, size - name);
        }
        at += size;
    }
    return false;
}

static size_t pack_gzip(const void *body, size_t size, uint8_t **ret)
{
    z_stream z = {0};
    if (deflateInit2(&z, LEVEL, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
        return 0;
    }
    const size_t most = deflateBound(&z, size);
    uint8_t *out = malloc(most);
    z.next_in = (Bytef *)(uintptr_t)body;
    z.avail_in = (uInt)size;
    z.next_out = out;
    z.avail_out = (uInt)most;
    const bool good = out != NULL && deflate(&z, Z_FINISH) == Z_STREAM_END;
    const size_t packed = good ? z.total_out : 0;
    deflateEnd(&z);
    if (!good) {
        free(out);
        return 0;
    }
    *ret = out;
    return packed;
}

static size_t pack_zstd(const void *body, size_t size, uint8_t **ret)
{
    const size_t most = ZSTD_compressBound(size);
    uint8_t *out = malloc(most);
    const size_t packed = out != NULL ? ZSTD_compress(out, most, body, size, LEVEL) : 0;
    if (out == NULL || ZSTD_isError(packed)) {
        free(out);
        return 0;
    }
    *ret = out;
    return packed;
}

bool http_is_packable(const struct http_request *r, unsigned status, const char *type)
{
    return r->server->config.web && status == 200 && type != NULL &&
           (strncmp(type, "application/json", 16) == 0 || strncmp(type, "text/plain", 10) == 0 ||
            strncmp(type, "application/openmetrics-text", 28) == 0);
}

const char *http_pack(const struct http_request *r, const void *body, size_t size,
                      uint8_t **ret_packed, size_t *ret_size)
{
    const char *encoding = size < PACK_MIN                               ? NULL
                           : size <= ZSTD_MAX && http_accepts(r, "zstd") ? "zstd"
                           : size <= GZIP_MAX && http_accepts(r, "gzip") ? "gzip"
                                                                         : NULL;
    if (encoding == NULL) {
        return NULL;
    }
    *ret_size =
        encoding[0] == 'z' ? pack_zstd(body, size, ret_packed) : pack_gzip(body, size, ret_packed);
    return *ret_size > 0 ? encoding : NULL;
}
