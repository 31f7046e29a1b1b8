/* sanitized.h: is this build under a sanitizer? Such a build looks for bugs of memory or threads, and takes four times as long.
 * So it draws fewer random worlds. The other build shows how often bugs of the algorithm occur. */
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#define SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define SANITIZED 0
#endif

/* The share of `all` seeds that is played, if their worlds differ only by chance. */
#define DRAWS(all) (SANITIZED ? ((all) + 3) / 4 : (all))
