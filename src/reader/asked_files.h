/* Files of debug information that a reader needs: it can open none, so it asks the other end. */
#ifndef FGPROF_READER_ASKED_FILES_H
#define FGPROF_READER_ASKED_FILES_H

#include "reader/connection.h"
#include "reader/packet_kind.h"
#include "symbol/debug_file.h"

/* In the reader: asks for each. */
struct asked_files {
    struct debug_files files;
    int socket;
};
void asked_files_init(struct asked_files *asked, int socket);

/* The other end: waits for a packet of this kind into connection->packet, and closes the file in
 * it. Meanwhile, sends the reader the files that it asks for; `files` opens them. Returns 0, or why
 * the reader has failed. */
int asked_files_receive(struct connection *connection, enum packet_kind kind,
                        struct debug_files *files);

#endif
