/* brain_file.h: the outer format of a recording of a fleet's brain: the file's head, and the head of each segment. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/bug.h"

#define BRAIN_FILE_MAGIC   0x314e415242464fULL /* "OFBRAN1" */
#define BRAIN_FILE_VERSION 1

struct brain_file_head {
    uint64_t magic, version;
    uint64_t layout; /* brain_codec_layout */
    int64_t utc_ns;  /* time of its beginning */
    uint64_t sum;    /* checksum of the fields before it */
};
/* Its bytes follow. Size 0: the end of the recording. */
struct brain_file_segment {
    uint64_t size;
    uint64_t sum; /* brain_file_sum */
};

uint64_t brain_file_head_sum(const struct brain_file_head *head);
/* number: of the segment, from 0 on. */
/* bytes NULL, size 0: the end. */
MUST_CHECK int brain_file_write(int fd, uint64_t number, const uint8_t *bytes, size_t size);
uint64_t brain_file_sum(uint64_t number, uint64_t size, const uint8_t *bytes);
