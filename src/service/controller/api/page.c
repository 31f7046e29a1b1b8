/* page.c: see page.h. */
#include <string.h>

#include "service/controller/api/page.h"

static const struct page_file *find(const char *path)
{
    for (size_t i = 0; i < page_file_count; i++) {
        if (strcmp(path, page_files[i].path) == 0) {
            return &page_files[i];
        }
    }
    return NULL;
}

bool page_has(const char *path)
{
    return find(path) != NULL;
}

bool page_answer(struct http_request *request)
{
    const char *method = http_method(request);
    const struct page_file *file = find(http_path(request));
    if (file == NULL || (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)) {
        return false;
    }
    const bool gzip = http_accepts(request, "gzip");
    const char *known = http_header(request, "If-None-Match");
    const struct http_header_field fields[] = {
        {"ETag", file->etag},
        {"Cache-Control", "no-cache"},
        {"Content-Security-Policy", PAGE_POLICY},
        {"X-Content-Type-Options", "nosniff"},
        {"Referrer-Policy", "no-referrer"},
        {"Vary", "Accept-Encoding"},
        {gzip ? "Content-Encoding" : NULL, "gzip"},
        {NULL, NULL},
    };
    if (known != NULL && strcmp(known, file->etag) == 0) {
        http_answer(request, 304, file->type, NULL, 0, fields);
    } else {
        http_answer(request, 200, file->type, gzip ? file->gzip : file->plain,
                    gzip ? file->gzip_size : file->size, fields);
    }
    return true;
}
