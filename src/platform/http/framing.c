/* framing.c: refuses request heads that two readers could read in different ways.
 *
 * If a proxy and this server read a head differently, a client can smuggle a second request past the proxy's rules: with two
 * lengths, chunks and a length, a name with a space before its colon, folded lines, or bare LFs. All of these are refused
 * here, because libmicrohttpd (0.9.75) accepts them. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "platform/http/server_internal.h"

struct head {
    const char
        *at; /* where the next name must begin, if all lines so far end in CR LF; NULL: not known */
    unsigned hosts, lengths, count;
    bool chunked, bad;
};

/* RFC 9110, 5.6.2 */
static bool is_token(const char *text, size_t size)
{
    static const char others[] = "!#$%&'*+-.^_`|~";
    for (size_t i = 0; i < size; i++) {
        const char c = text[i];
        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
            (c == 0 || strchr(others, c) == NULL)) {
            return false;
        }
    }
    return size > 0;
}

static bool is_value(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (((unsigned char)text[i] < 0x20 && text[i] != '\t') || text[i] == 0x7f) {
            return false;
        }
    }
    return true;
}

static enum MHD_Result judge_field(void *context, enum MHD_ValueKind kind, const char *name,
                                   size_t name_size, const char *value, size_t value_size)
{
    struct head *h = context;
    const char *text = value != NULL ? value : "";
    h->count++;
    h->hosts += strcasecmp(name, "Host") == 0;
    h->lengths += strcasecmp(name, "Content-Length") == 0;
    h->chunked = h->chunked || strcasecmp(name, "Transfer-Encoding") == 0;
    h->bad = h->bad || !is_token(name, name_size) || !is_value(text, value_size);
    if (h->at != NULL) {
        h->bad = h->bad || name != h->at || value == NULL;
        h->at = text + value_size + 2;
    }
    return MHD_YES;
}

/* Up to version 0.9.75 libmicrohttpd accepts a bare LF as the end of a line and doesn't report it. It parses in place: names
 * and values stay where they were received. So lines that end in CR LF are two bytes apart, up to the end of the head. Later
 * versions refuse bare LFs themselves. */
static bool parses_in_place(void)
{
    unsigned major = 0, minor = 0, patch = 0;
    return sscanf(MHD_get_version(), "%u.%u.%u", &major, &minor, &patch) == 3 && major == 0 &&
           minor == 9 && patch <= 75;
}

unsigned http_judge_framing(struct MHD_Connection *mhd, const char *method, const char *version)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    const bool in_place = parses_in_place() && info != NULL;
    struct head h = {.at = in_place ? version + strlen(version) + 2 : NULL};
    (void)MHD_get_connection_values_n(mhd, MHD_HEADER_KIND, judge_field, &h);
    if (h.at != NULL && h.at + 2 != method + info->header_size) {
        h.bad = true;
    }
    const bool hostless = h.hosts == 0 && strcmp(version, "HTTP/1.0") != 0;
    return h.bad || hostless || h.hosts > 1 || h.lengths > 1 ? 400 : h.chunked ? 411 : 0;
}
