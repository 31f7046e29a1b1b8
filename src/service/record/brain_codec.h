/* brain_codec.h: packs the input of a fleet's brain (core/brain/brain.h). Each fact is packed against the last fact of its
 * kind (pack.h).
 *
 * A record begins with a byte: fact + 1, BRAIN_CODEC_ANSWER or BRAIN_CODEC_NAME. Then follow:
 * - for a fact: the time since the last fact, its struct as words with zeros for pointers, and the data that they point to;
 * - for an answer: its result and its print;
 * - for a name: what was asked, and what was returned.
 *
 * Little endian, only for this build. Decoding is total: any bytes give a record that the brain accepts, or -EPROTO, or
 * -ENODATA if they end too early. */
#pragma once
#include "core/brain/brain.h"

#define BRAIN_CODEC_ANSWER 200
#define BRAIN_CODEC_NAME   201
/* The largest fact that is packed against the last one. A larger fact is written whole. */
#define BRAIN_CODEC_WORDS 64
#define BRAIN_CODEC_TEXT  4096
#define BRAIN_CODEC_MAX   (512 << 10) /* the largest record */

struct brain_codec {
    int64_t now_ns;
    uint64_t last[BRAIN_FACT_COUNT][BRAIN_CODEC_WORDS];
    uint64_t samples[ALERT_METRIC_COUNT][BRAIN_CODEC_WORDS / 8];
};

void brain_codec_init(struct brain_codec *c);
/* Writes at most BRAIN_CODEC_MAX bytes; returns their number. */
size_t brain_codec_fact(struct brain_codec *c, struct mono now, enum brain_fact fact,
                        const void *data, uint8_t *bytes);
/* Returns 0 for a fact without an answer. */
size_t brain_codec_answer(enum brain_fact fact, const struct brain_answer *answer, uint8_t *bytes);
size_t brain_codec_name(const struct brain_name *name, uint8_t *bytes);

/* The state that the brain needs for the facts written so far. */
struct brain_bounds {
    bool has_hosts;
    uint32_t hosts, nics;
};
struct brain_record_item {
    uint8_t kind; /* BRAIN_CODEC_ANSWER, BRAIN_CODEC_NAME; else the number of a fact + 1 */
    enum brain_fact fact;
    struct mono now;
    const void *data; /* of a fact */
    int64_t result;   /* of an answer */
    uint64_t print;
    struct brain_name name;
};
/* Memory of decoded records. Pointers of a fact are valid until the next fact, pointers of a name until the next name. */
struct brain_decoder {
    struct brain_codec codec;
    struct brain_bounds bounds;
    uint64_t *words; /* of a fact */
    uint8_t *behind; /* its texts and lists */
    uint8_t names[2 * BRAIN_CODEC_TEXT];
};
MUST_CHECK int brain_decoder_init(struct brain_decoder *d); /* -ENOMEM */
void brain_decoder_done(struct brain_decoder *d);
/* Returns the bytes used, at least 1. */
MUST_CHECK long brain_decode(struct brain_decoder *d, const uint8_t *bytes, size_t size,
                             struct brain_record_item *ret);
/* A number that changes with the layout of the recorded structs. */
uint64_t brain_codec_layout(void);
