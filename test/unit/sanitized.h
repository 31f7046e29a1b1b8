/* sanitized.h: is this build under a sanitizer? It looks for bugs of memory or of threads and takes four times as long, so what a
 * test draws by chance is drawn less often there. How often bugs of the algorithm show, the other build tells. */
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#define SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define SANITIZED 0
#endif

/* So many of `all` seeds, whose worlds differ by chance alone. */
#define DRAWS(all) (SANITIZED ? ((all) + 3) / 4 : (all))
