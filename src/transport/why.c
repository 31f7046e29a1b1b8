/* why.c: words for people: why the last call failed, and what happened. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/plain.h"
#include "transport/internal.h"

static _Thread_local char last[WHY_SIZE];

const char *transport_why(void)
{
    return last;
}

void why(const char *format, ...)
{
    char text[WHY_SIZE];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    plain_text(text, last, sizeof(last));
}

/* Of errors that come without words. */
static const char *meaning(int error)
{
    switch (error) {
    case -ECONNABORTED:
        return "the peer closed the communicator";
    case -EINVAL:
        return "expected up to 1 GiB, sent by the end that connected or received by the one that "
               "accepted";
    case -ENOBUFS:
        return "there are as many peers (16,384), or communicators to this one (1,024), as there "
               "may be";
    case -ENOMEM:
        return "out of memory";
    case -ENOTRECOVERABLE:
        return "a bug of Foliot's own ended all that goes to this peer";
    default:
        return strerror(-error);
    }
}

int why_error(int error)
{
    if (error < 0) {
        why("%s", meaning(error));
    }
    return error;
}

int why_child(void)
{
    why("a child of fork() can't use the communicators of its parent: it may initialise anew");
    return -ECHILD;
}

void say(const struct transport *t, enum transport_level level, const char *format, ...)
{
    char text[WHY_SIZE], plain[WHY_SIZE];
    va_list arguments;

    if (t->config.say == NULL) {
        return;
    }
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    plain_text(text, plain, sizeof(plain)); /* an interface may have any name */
    t->config.say(t->config.say_context, level, plain);
}
