#include "cli/serve/quota.h"

void quota_init(struct quota *quota)
{
    *quota = (struct quota){0};
    pthread_mutex_init(&quota->lock, NULL);
}

void quota_destroy(struct quota *quota)
{
    pthread_mutex_destroy(&quota->lock);
}

/* Its place, or else a free one; SESSION_USERS_MAX if there is none. */
static size_t find_place(const struct quota *quota, const struct peer *peer)
{
    size_t place = SESSION_USERS_MAX;
    for (size_t i = 0; i < SESSION_USERS_MAX; i++) {
        if (quota->peers[i].profiles && peer_is_same(&quota->peers[i].peer, peer))
            return i;
        if (!quota->peers[i].profiles)
            place = i;
    }
    return place;
}

bool quota_take(struct quota *quota, const struct peer *peer)
{
    pthread_mutex_lock(&quota->lock);
    size_t place = find_place(quota, peer);
    bool ok = place < SESSION_USERS_MAX && quota->peers[place].profiles < QUOTA_PROFILES_MAX;
    if (ok) {
        quota->peers[place].peer = *peer;
        quota->peers[place].profiles++;
    }
    pthread_mutex_unlock(&quota->lock);
    return ok;
}

void quota_give_back(struct quota *quota, const struct peer *peer)
{
    pthread_mutex_lock(&quota->lock);
    size_t place = find_place(quota, peer);
    if (place < SESSION_USERS_MAX && quota->peers[place].profiles)
        quota->peers[place].profiles--;
    pthread_mutex_unlock(&quota->lock);
}
