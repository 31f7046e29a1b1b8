/* page.c: see page.h. */
#include "service/controller/page.h"

#include <string.h>

/* Does an Accept-Encoding take gzip? "gzip;q=0" is the one way to say no that browsers know. */
static bool takes_gzip(const struct http_request *request)
{
    const char *accept = http_header(request, "Accept-Encoding");
    const char *gzip = accept != NULL ? strstr(accept, "gzip") : NULL;
    return gzip != NULL && strncmp(gzip + 4, ";q=0", 4) != 0;
}

bool page_answer(struct http_request *request)
{
    const char *path = http_path(request);
    const struct page_file *file = NULL;
    for (size_t i = 0; i < page_file_count; i++) {
        file = strcmp(path, page_files[i].path) == 0 ? &page_files[i] : file;
    }
    if (file == NULL || strcmp(http_method(request), "GET") != 0) {
        return false;
    }
    const bool gzip = takes_gzip(request);
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
