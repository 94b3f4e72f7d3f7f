/* The data of the HTML page, as JSON. */
#ifndef FGPROF_OUTPUT_PAGE_DATA_H
#define FGPROF_OUTPUT_PAGE_DATA_H

#include "output/json.h"
#include "profile/view.h"

/* Writes all of the profile that the page shows as members of a JSON object, without the object's
 * braces. data.c describes them, data.js reads them. */
void page_data(const struct fgprof_profile *profile, const struct profile_view *view,
               struct json *json);

/* Writes two more members, if the samples' threads were seen to wait for something. The view tells
 * places of owners: see profile_view_make. */
void page_waits(const struct fgprof_profile *profile, const struct profile_view *view,
                struct json *json);

#endif
