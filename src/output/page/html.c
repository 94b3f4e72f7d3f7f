/* A self-contained page that shows a profile, or how two differ, as a flame graph: the sources in
 * page/ with the data between them, as JSON. Texts reach the screen through textContent or a
 * canvas, never as HTML. */
#include "output/json.h"
#include "output/output.h"
#include "output/page/data.h"

#include <errno.h>
#include <string.h>

#include "page.inc" /* page_html, page_css, page_js */

/* The places of the other parts in the page's HTML. */
#define PLACE_OF_STYLE "/* page.css */"
#define PLACE_OF_DATA "<!-- data -->"
#define PLACE_OF_SCRIPT "/* scripts */"

/* Writes the page's HTML up to `place`, and returns what follows the place. */
static const char *write_until(struct sink *sink, const char *html, const char *place)
{
    const char *end = strstr(html, place);
    sink_write(sink, html, (size_t)(end - html));
    return end + strlen(place);
}

/* Begins the page, and returns the rest of its HTML, from the place of the data on. */
static const char *begin_page(struct sink *sink)
{
    const char *html = write_until(sink, page_html, PLACE_OF_STYLE);
    sink_write(sink, page_css, sizeof page_css - 1);
    html = write_until(sink, html, PLACE_OF_DATA);
    sink_write(sink, "{", 1);
    return html;
}

static void end_page(struct sink *sink, const char *html)
{
    sink_write(sink, "}", 1);
    html = write_until(sink, html, PLACE_OF_SCRIPT);
    sink_write(sink, page_js, sizeof page_js - 1);
    sink_write(sink, html, strlen(html));
}

/* Whether the page can begin with what it is to show. If not, sets the sink's error. */
static bool can_show(const struct fgprof_profile *profile, struct sink *sink)
{
    bool can = profile->has_elapsed || !(profile->folded_flags & FGPROF_FOLDED_ELAPSED);
    if (!can && !sink->error)
        sink->error = -ENODATA;
    return can;
}

void output_html(const struct fgprof_profile *profile, const struct profile_view *view,
                 struct sink *sink)
{
    if (!can_show(profile, sink))
        return;
    const char *html = begin_page(sink);
    struct json json = {.sink = sink};
    page_data(profile, view, &json);
    page_waits(profile, view, &json);
    end_page(sink, html);
}

/* Writes the page of the profile after, with the one before as one more member of its data. */
void output_html_difference(const struct profile_pair *pair, bool is_normalized, struct sink *sink)
{
    if (!can_show(pair->before, sink) || !can_show(pair->after, sink))
        return;
    const char *html = begin_page(sink);
    struct json json = {.sink = sink};
    page_data(pair->after, &pair->view_after, &json);
    json_bool(&json, "is_normalized", is_normalized);
    json_begin(&json, "before", '{');
    page_data(pair->before, &pair->view_before, &json);
    json_end(&json, '}');
    end_page(sink, html);
}
