/* parse.c: builds the tree from libyaml's events. */
#include "platform/config/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml.h>

enum {
    DEPTH_MAX = 32,
    FILE_SIZE_MAX = 256 << 20, /* a peers list of 2^20 NICs is about 100 MiB */
    NODE_COUNT_MAX = 16 << 20,
    CHUNK_SIZE = 64 << 10,
    FEW_KEYS = 32,
};

struct chunk {
    struct chunk *next;
    size_t used, size;
    _Alignas(max_align_t) char bytes[];
};

struct config {
    struct chunk *chunks;
    char *name;
    size_t node_count;
    struct config_node *root;
};

struct builder {
    struct config *config;
    struct config_error *error;
    struct config_node *stack[DEPTH_MAX];
    const char *pending_key[DEPTH_MAX]; /* in the map of that level: this key waits for its value */
    yaml_mark_t key_mark[DEPTH_MAX];
    size_t depth;
};

static void *allocate(struct config *config, size_t size)
{
    size = (size + _Alignof(max_align_t) - 1) & ~(_Alignof(max_align_t) - 1);
    struct chunk *chunk = config->chunks;
    if (chunk == NULL || chunk->size - chunk->used < size) {
        const size_t bytes = size > CHUNK_SIZE ? size : CHUNK_SIZE;
        chunk = malloc(sizeof(*chunk) + bytes);
        if (chunk == NULL) {
            return NULL;
        }
        *chunk = (struct chunk){.next = config->chunks, .size = bytes};
        config->chunks = chunk;
    }
    void *result = chunk->bytes + chunk->used;
    chunk->used += size;
    return result;
}

static const char *keep_text(struct config *config, const char *text, size_t size)
{
    char *copy = allocate(config, size + 1);
    if (copy != NULL) {
        memcpy(copy, text, size);
        copy[size] = 0;
    }
    return copy;
}

struct config *config_free(struct config *config)
{
    if (config != NULL) {
        for (struct chunk *chunk = config->chunks, *next; chunk != NULL; chunk = next) {
            next = chunk->next;
            free(chunk);
        }
        free(config->name);
        free(config);
    }
    return NULL;
}

const char *config_name(const struct config *config)
{
    return config->name;
}

const struct config_node *config_root(const struct config *config)
{
    return config->root;
}

int config_say(struct config_error *error, const char *name, unsigned line, unsigned column,
               const char *format, ...)
{
    const int n = snprintf(error->text, sizeof(error->text), "%s:%u:%u: ", name, line, column);
    if (n > 0 && (size_t)n < sizeof(error->text)) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(error->text + n, sizeof(error->text) - (size_t)n, format, arguments);
        va_end(arguments);
    }
    return -EINVAL;
}

static int say_mark(struct builder *b, const yaml_mark_t *mark, const char *message)
{
    return config_say(b->error, b->config->name, (unsigned)mark->line + 1,
                      (unsigned)mark->column + 1, "%s", message);
}

static int say_no_memory(struct builder *b)
{
    snprintf(b->error->text, sizeof(b->error->text), "%s: out of memory", b->config->name);
    return -ENOMEM;
}

/* Adds a new node to the open list or map. In a map the key must come first. */
static int add_node(struct builder *b, const yaml_mark_t *mark, enum config_kind kind,
                    struct config_node **ret)
{
    struct config_node *parent = b->depth > 0 ? b->stack[b->depth - 1] : NULL;
    const char *key = NULL;
    if (parent != NULL && parent->kind == CONFIG_MAP) {
        key = b->pending_key[b->depth - 1];
        if (key == NULL) {
            return say_mark(b, mark, "expected a plain word as key, found a list or map");
        }
        b->pending_key[b->depth - 1] = NULL;
    }
    if (++b->config->node_count > NODE_COUNT_MAX) {
        return say_mark(b, mark, "expected a smaller file, found more than 16 million values");
    }
    struct config_node *node = allocate(b->config, sizeof(*node));
    if (node == NULL) {
        return say_no_memory(b);
    }
    *node = (struct config_node){.kind = kind,
                                 .line = (unsigned)mark->line + 1,
                                 .column = (unsigned)mark->column + 1,
                                 .key = key,
                                 .config = b->config};
    if (parent == NULL) {
        b->config->root = node;
    } else {
        node->key_line = (unsigned)b->key_mark[b->depth - 1].line + 1;
        node->key_column = (unsigned)b->key_mark[b->depth - 1].column + 1;
        *(parent->last != NULL ? &parent->last->next : &parent->first) = node;
        parent->last = node;
        parent->count++;
    }
    *ret = node;
    return 0;
}

static int open_node(struct builder *b, const yaml_mark_t *mark, enum config_kind kind)
{
    struct config_node *node = NULL;
    const int r = add_node(b, mark, kind, &node);
    if (r < 0) {
        return r;
    }
    if (b->depth >= DEPTH_MAX) {
        return say_mark(b, mark, "expected at most 32 levels, found one more");
    }
    b->pending_key[b->depth] = NULL;
    b->stack[b->depth++] = node;
    return 0;
}

static int on_scalar(struct builder *b, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    const size_t size = event->data.scalar.length;
    if (memchr(text, 0, size) != NULL) {
        return say_mark(b, &event->start_mark, "expected text, found a zero byte");
    }
    const char *copy = keep_text(b->config, text, size);
    if (copy == NULL) {
        return say_no_memory(b);
    }
    struct config_node *parent = b->depth > 0 ? b->stack[b->depth - 1] : NULL;
    if (parent != NULL && parent->kind == CONFIG_MAP && b->pending_key[b->depth - 1] == NULL) {
        b->pending_key[b->depth - 1] = copy;
        b->key_mark[b->depth - 1] = event->start_mark;
        return 0;
    }
    struct config_node *node = NULL;
    const int r = add_node(b, &event->start_mark, CONFIG_SCALAR, &node);
    if (r < 0) {
        return r;
    }
    node->text = copy;
    node->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    return 0;
}

static int compare_keys(const void *a, const void *b)
{
    const struct config_node *x = *(const struct config_node *const *)a,
                             *y = *(const struct config_node *const *)b;
    const int order = strcmp(x->key, y->key);
    return order != 0 ? order
           : x->key_line != y->key_line
               ? (x->key_line > y->key_line) - (x->key_line < y->key_line)
               : (x->key_column > y->key_column) - (x->key_column < y->key_column);
}

/* Checks that each key stands once. The keys are sorted, because a map may have a key per host of a fleet. */
static int close_map(struct builder *b, const struct config_node *map)
{
    const struct config_node *few[FEW_KEYS], **keys = few, *again = NULL;
    size_t count = 0;
    unsigned first = 0;
    if (map->count > FEW_KEYS &&
        (keys = malloc(map->count * sizeof(const struct config_node *))) == NULL) {
        return say_no_memory(b);
    }
    for (const struct config_node *n = map->first; n != NULL; n = n->next) {
        keys[count++] = n;
    }
    qsort(keys, count, sizeof(const struct config_node *), compare_keys);
    for (size_t i = 1; i < count; i++) {
        if (strcmp(keys[i]->key, keys[i - 1]->key) == 0 &&
            (again == NULL || keys[i]->key_line < again->key_line)) {
            again = keys[i];
            first = keys[i - 1]->line;
        }
    }
    if (keys != few) {
        free(keys);
    }
    return again == NULL ? 0
                         : config_say(b->error, b->config->name, again->key_line, again->key_column,
                                      "expected each key once, found '%s' again (first in line %u)",
                                      again->key, first);
}

static int on_event(struct builder *b, const yaml_event_t *event)
{
    const yaml_mark_t *mark = &event->start_mark;
    switch (event->type) {
    case YAML_ALIAS_EVENT:
        return say_mark(b, mark, "expected a value, found an alias (*name isn't supported)");
    case YAML_SCALAR_EVENT:
        if (event->data.scalar.anchor != NULL) {
            return say_mark(b, mark, "expected a value, found an anchor (&name isn't supported)");
        }
        return on_scalar(b, event);
    case YAML_SEQUENCE_START_EVENT:
        if (event->data.sequence_start.anchor != NULL) {
            return say_mark(b, mark, "expected a list, found an anchor (&name isn't supported)");
        }
        return open_node(b, mark, CONFIG_LIST);
    case YAML_MAPPING_START_EVENT:
        if (event->data.mapping_start.anchor != NULL) {
            return say_mark(b, mark, "expected a map, found an anchor (&name isn't supported)");
        }
        return open_node(b, mark, CONFIG_MAP);
    case YAML_SEQUENCE_END_EVENT:
        b->depth--;
        return 0;
    case YAML_MAPPING_END_EVENT:
        return close_map(b, b->stack[--b->depth]);
    case YAML_DOCUMENT_START_EVENT:
        if (b->config->root != NULL) {
            return say_mark(b, mark, "expected one document, found a second");
        }
        return 0;
    default:
        return 0;
    }
}

static int parse_events(struct builder *b, yaml_parser_t *parser)
{
    for (;;) {
        yaml_event_t event;
        if (!yaml_parser_parse(parser, &event)) {
            const yaml_mark_t *mark = &parser->problem_mark;
            if (parser->error == YAML_MEMORY_ERROR) {
                return say_no_memory(b);
            }
            return config_say(b->error, b->config->name, (unsigned)mark->line + 1,
                              (unsigned)mark->column + 1, "expected YAML, found an error: %s%s%s",
                              parser->problem != NULL ? parser->problem : "unreadable",
                              parser->context != NULL ? " " : "",
                              parser->context != NULL ? parser->context : "");
        }
        const int r = on_event(b, &event);
        const bool end = event.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
        if (r < 0 || end) {
            return r;
        }
    }
}

int config_parse(const char *name, const char *text, size_t size, struct config **ret,
                 struct config_error *error)
{
    struct config *config = calloc(1, sizeof(*config));
    yaml_parser_t parser;
    if (config == NULL || (config->name = strdup(name)) == NULL ||
        !yaml_parser_initialize(&parser)) {
        config_free(config);
        snprintf(error->text, sizeof(error->text), "%s: out of memory", name);
        return -ENOMEM;
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
    struct builder b = {.config = config, .error = error};
    int r = parse_events(&b, &parser);
    yaml_parser_delete(&parser);
    const yaml_mark_t start = {0};
    if (r == 0 && config->root == NULL) {
        r = open_node(&b, &start, CONFIG_MAP);
    }
    if (r < 0) {
        config_free(config);
        return r;
    }
    *ret = config;
    return 0;
}

static int read_all(const char *path, char **ret_text, size_t *ret_size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return -errno;
    }
    struct stat st;
    int r = fstat(fd, &st) < 0 ? -errno : S_ISDIR(st.st_mode) ? -EISDIR : 0;
    char *text = NULL;
    size_t size = 0, capacity = 0;
    while (r == 0) {
        if (size == capacity) {
            capacity = capacity == 0 ? 16384 : capacity * 2;
            char *larger = capacity > FILE_SIZE_MAX ? NULL : realloc(text, capacity);
            if (larger == NULL) {
                r = capacity > FILE_SIZE_MAX ? -EFBIG : -ENOMEM;
                break;
            }
            text = larger;
        }
        const ssize_t n = read(fd, text + size, capacity - size);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            r = n < 0 ? -errno : 0;
            break;
        }
        size += (size_t)n;
    }
    close(fd);
    if (r < 0) {
        free(text);
        return r;
    }
    text[size] = 0; /* the last read asked for one byte more, so there is room for the 0 */
    *ret_text = text;
    *ret_size = size;
    return 0;
}

int config_read(const char *path, char **ret_text, size_t *ret_size, struct config_error *error)
{
    const int r = read_all(path, ret_text, ret_size);
    if (r < 0) {
        snprintf(error->text, sizeof(error->text), "%s: expected a readable file, found: %s", path,
                 strerror(-r));
    }
    return r;
}

int config_load(const char *path, struct config **ret, struct config_error *error)
{
    char *text = NULL;
    size_t size = 0;
    int r = config_read(path, &text, &size, error);
    if (r < 0) {
        return r;
    }
    r = config_parse(path, text, size, ret, error);
    free(text);
    return r;
}
