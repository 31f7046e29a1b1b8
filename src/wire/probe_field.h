/* probe_field.h: the fields of the probe packet as data: name, place, size. It repeats the table of probe.h for programs that
 * treat each field alike: a simulated liar lies in each of them. test_probe proves that it is complete: each byte that the
 * encoder writes belongs to a field. The frame of the packet (magic, length, key id, tag) is not in it. */
#pragma once
#include <stdint.h>

#include "wire/probe.h"

/* The packets that have it, as bits. */
#define PROBE_FIELD_STAMPS  1u /* pair, single, burst, discovery */
#define PROBE_FIELD_QUERY   2u /* query, answer */
#define PROBE_FIELD_MEASURE 4u /* measure, measured */
#define PROBE_FIELD_DIGEST  8u
#define PROBE_FIELD_PORT    16u
#define PROBE_FIELD_UD      32u
#define PROBE_FIELD_CLOCK   7u /* all except the three before */
#define PROBE_FIELD_ALL     63u

struct probe_field {
    const char *name;
    uint8_t offset, size; /* bytes, little endian */
    uint8_t in;           /* PROBE_FIELD_* */
};

/* The first PROBE_FIELD_MESH are of packets that nodes send each other. */
enum { PROBE_FIELD_COUNT = 71, PROBE_FIELD_MESH = 55 };
extern const struct probe_field probe_fields[PROBE_FIELD_COUNT];
/* The names in the same order, ended by NULL. */
extern const char *const probe_field_names[PROBE_FIELD_COUNT + 1];

/* The bit for a packet's type. */
uint8_t probe_field_kind(enum probe_type type);
uint64_t probe_field_get(const uint8_t bytes[static PROBE_SIZE], const struct probe_field *field);
/* Bits that the field doesn't have are cut off. */
void probe_field_put(uint8_t bytes[static PROBE_SIZE], const struct probe_field *field,
                     uint64_t value);
