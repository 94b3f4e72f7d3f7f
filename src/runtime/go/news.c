#include "runtime/go/news.h"
#include "base/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int goroutine_news_add(struct goroutine_news *news, const struct goroutine_seen *seen,
                       unsigned char **ret_stack)
{
    if (news->stack_bytes && seen->stack_bytes + news->stack_bytes > GOROUTINE_NEWS_STACK_BYTES)
        return -ENOSPC;
    if (array_reserve(&news->items, &news->capacity, news->count + 1) ||
        array_reserve(&news->stacks, &news->stack_capacity, news->stack_bytes + seen->stack_bytes))
        return -ENOMEM;
    struct goroutine_seen *added = &news->items[news->count++];
    *added = *seen;
    added->stack_at = news->stack_bytes;
    news->stack_bytes += seen->stack_bytes;
    *ret_stack = news->stacks + added->stack_at;
    return 0;
}

int goroutine_news_label(struct goroutine_news *news, const char *labels, size_t bytes)
{
    struct goroutine_seen *seen = &news->items[news->count - 1];
    if (array_reserve(&news->stacks, &news->stack_capacity, news->stack_bytes + bytes))
        return -ENOMEM;
    memcpy(news->stacks + news->stack_bytes, labels, bytes);
    seen->label_at = news->stack_bytes;
    seen->label_bytes = bytes;
    news->stack_bytes += bytes;
    return 0;
}

void goroutine_news_free(struct goroutine_news *news)
{
    if (!news)
        return;
    free(news->items);
    free(news->stacks);
    free(news);
}
