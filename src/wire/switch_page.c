/* switch_page.c: the switch's one word. */
#include "wire/switch_page.h"

#include <string.h>

static bool is_page(const struct switch_page *page)
{
    return __atomic_load_n(&page->magic, __ATOMIC_ACQUIRE) == SWITCH_PAGE_MAGIC &&
           __atomic_load_n(&page->version, __ATOMIC_RELAXED) == SWITCH_PAGE_VERSION;
}

void switch_page_init(struct switch_page *page)
{
    if (!is_page(page)) {
        memset(page, 0, sizeof(*page));
        page->version = SWITCH_PAGE_VERSION;
        __atomic_store_n(&page->magic, SWITCH_PAGE_MAGIC, __ATOMIC_RELEASE);
    }
}

bool switch_page_write(struct switch_page *page, enum switch_mode mode)
{
    const uint64_t word = __atomic_load_n(&page->word, __ATOMIC_RELAXED);
    if ((word & 0xff) == (uint64_t)mode) {
        return false;
    }
    __atomic_store_n(&page->word, ((word >> 8) + 1) << 8 | (uint64_t)mode, __ATOMIC_RELEASE);
    return true;
}

enum switch_mode switch_page_read(const struct switch_page *page)
{
    const uint64_t mode = __atomic_load_n(&page->word, __ATOMIC_ACQUIRE) & 0xff;
    return is_page(page) && mode <= SWITCH_FULL ? (enum switch_mode)mode : SWITCH_UNSET;
}

enum switch_mode switch_lesser(enum switch_mode a, enum switch_mode b)
{
    return a == SWITCH_UNSET ? b : b == SWITCH_UNSET ? a : a < b ? a : b;
}

const char *switch_mode_word(enum switch_mode mode)
{
    static const char *const words[] = {NULL, "off", "observe", "failover", "full"};
    return mode <= SWITCH_FULL ? words[mode] : NULL;
}
