/* brain_codec.h: what a fleet's brain is told (core/brain/brain.h), packed: each fact against the last one alike (pack.h).
 *
 * A record is a byte (fact + 1, BRAIN_CODEC_ANSWER or BRAIN_CODEC_NAME), then: of a fact the time since the last one, its
 * struct as words with zeros for pointers, and what these point to; of an answer its result and its print; of a name what was
 * asked and what was told. Little endian, of this build.
 *
 * Decoding is total: any bytes give a record that the brain takes, or -EPROTO, or -ENODATA where they end too early. */
#pragma once
#include "core/brain/brain.h"

#define BRAIN_CODEC_ANSWER 200
#define BRAIN_CODEC_NAME   201
#define BRAIN_CODEC_WORDS                                                                          \
    64 /* of a fact that is packed against the last one; of a larger one all is written */
#define BRAIN_CODEC_TEXT 4096
#define BRAIN_CODEC_MAX  (512 << 10) /* the largest record */

struct brain_codec {
    int64_t now_ns;
    uint64_t last[BRAIN_FACT_COUNT][BRAIN_CODEC_WORDS];
    uint64_t samples[ALERT_METRIC_COUNT][BRAIN_CODEC_WORDS / 8];
};

void brain_codec_init(struct brain_codec *c);
/* At most BRAIN_CODEC_MAX bytes; returns how many. */
size_t brain_codec_fact(struct brain_codec *c, struct mono now, enum brain_fact fact,
                        const void *data, uint8_t *bytes);
/* 0: a fact without an answer. */
size_t brain_codec_answer(enum brain_fact fact, const struct brain_answer *answer, uint8_t *bytes);
size_t brain_codec_name(const struct brain_name *name, uint8_t *bytes);

/* What was written there, and what the brain has to be for it. */
struct brain_bounds {
    bool has_hosts;
    uint32_t hosts, nics;
};
struct brain_record_item {
    uint8_t kind; /* BRAIN_CODEC_ANSWER, BRAIN_CODEC_NAME; else a fact */
    enum brain_fact fact;
    struct mono now;
    const void *data; /* of the fact */
    int64_t result;   /* of an answer */
    uint64_t print;
    struct brain_name name;
};
/* Memory of what is decoded: pointers of a fact lead here until the next one, those of a name until the next name. */
struct brain_decoder {
    struct brain_codec codec;
    struct brain_bounds bounds;
    uint64_t *words; /* of the fact */
    uint8_t *behind; /* texts and lists of it */
    uint8_t names[2 * BRAIN_CODEC_TEXT];
};
MUST_CHECK int brain_decoder_init(struct brain_decoder *d); /* -ENOMEM */
void brain_decoder_done(struct brain_decoder *d);
/* Returns the bytes used, at least 1. */
MUST_CHECK long brain_decode(struct brain_decoder *d, const uint8_t *bytes, size_t size,
                             struct brain_record_item *ret);
/* A number that changes with the layout of what is recorded. */
uint64_t brain_codec_layout(void);
