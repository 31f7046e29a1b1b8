/* page.h: the dashboard's files and the API's description, built into the controller. A GET needs no token, because they hold
 * no secret. An answer has an ETag, gzip if the caller takes it, and the headers of PAGE_POLICY. web/embed.mjs writes the
 * table. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "platform/http/server.h"

/* Nothing from other sites, no inline script or style, in no frame. */
#define PAGE_POLICY                                                                                \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "              \
    "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"

struct page_file {
    const char *path; /* "/app.js"; "/" is the page itself */
    const char *type;
    const char *etag; /* quoted, as the header has it */
    const unsigned char *plain;
    size_t size;
    const unsigned char *gzip;
    size_t gzip_size;
};

extern const struct page_file page_files[];
extern const size_t page_file_count;

bool page_has(const char *path);
/* Answers a GET or HEAD of one of these files. false: the path is none of them; nothing was answered. */
bool page_answer(struct http_request *request);
