/* ceiling.c: checks a decoded message against limits for every repeated field and every text. It walks the message's
 * descriptor, so that a new field has a limit, too, even if nobody sets one. */
#include <stdio.h>
#include <string.h>

#include "platform/message/message.h"

struct walk {
    const struct message_ceiling *ceilings;
    size_t ceiling_count;
    char *words;
};

static struct message_ceiling ceiling_of(const struct walk *w, const ProtobufCMessageDescriptor *d,
                                         const char *field)
{
    struct message_ceiling c = {d, field, 0, 0};
    for (size_t i = 0; i < w->ceiling_count; i++) {
        if (w->ceilings[i].message == d && strcmp(w->ceilings[i].field, field) == 0) {
            c = w->ceilings[i];
            break;
        }
    }
    c.count = c.count != 0 ? c.count : MESSAGE_REPEATED_MAX;
    c.size = c.size != 0 ? c.size : MESSAGE_TEXT_MAX;
    return c;
}

static bool refuse(const struct walk *w, const struct message_ceiling *c, size_t is, size_t most,
                   const char *unit)
{
    snprintf(w->words, 160, "%s.%s: %zu%s, at most %zu", c->message->short_name, c->field, is, unit,
             most);
    return false;
}

static bool within(const struct walk *w, const ProtobufCMessage *m);

/* Checks one value of a field. */
static bool value_within(const struct walk *w, const ProtobufCFieldDescriptor *f,
                         const struct message_ceiling *c, const void *value)
{
    size_t size = 0;
    if (f->type == PROTOBUF_C_TYPE_MESSAGE) {
        const ProtobufCMessage *inner = *(const ProtobufCMessage *const *)value;
        return inner == NULL || within(w, inner);
    }
    if (f->type == PROTOBUF_C_TYPE_STRING) {
        const char *text = *(const char *const *)value;
        size = text != NULL ? strlen(text) : 0;
    } else if (f->type == PROTOBUF_C_TYPE_BYTES) {
        size = ((const ProtobufCBinaryData *)value)->len;
    }
    return size <= c->size || refuse(w, c, size, c->size, " bytes");
}

static bool repeated_within(const struct walk *w, const ProtobufCFieldDescriptor *f,
                            const struct message_ceiling *c, const uint8_t *at)
{
    const size_t count = *(const size_t *)(const void *)(at + f->quantifier_offset);
    if (count > c->count) {
        return refuse(w, c, count, c->count, "");
    }
    if (f->type != PROTOBUF_C_TYPE_MESSAGE && f->type != PROTOBUF_C_TYPE_STRING) {
        /* our messages have no repeated bytes */
        return f->type != PROTOBUF_C_TYPE_BYTES || refuse(w, c, count, 0, "");
    }
    void *const *values = *(void *const *const *)(const void *)(at + f->offset);
    for (size_t i = 0; i < count; i++) {
        if (!value_within(w, f, c, &values[i])) {
            return false;
        }
    }
    return true;
}

static bool within(const struct walk *w, const ProtobufCMessage *m)
{
    const uint8_t *at = (const uint8_t *)m;
    for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &m->descriptor->fields[i];
        const bool repeated = f->label == PROTOBUF_C_LABEL_REPEATED;
        if (!repeated && f->type != PROTOBUF_C_TYPE_MESSAGE && f->type != PROTOBUF_C_TYPE_STRING &&
            f->type != PROTOBUF_C_TYPE_BYTES) {
            continue;
        }
        const struct message_ceiling c = ceiling_of(w, m->descriptor, f->name);
        if (repeated ? !repeated_within(w, f, &c, at) : !value_within(w, f, &c, at + f->offset)) {
            return false;
        }
    }
    return true;
}

bool message_within(const ProtobufCMessage *m, const struct message_ceiling *ceilings,
                    size_t ceiling_count, char ret_words[160])
{
    const struct walk w = {ceilings, ceiling_count, ret_words};
    ret_words[0] = 0;
    return within(&w, m);
}
