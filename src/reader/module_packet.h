/* How a module is sent to a reader: what it is called, and its file. */
#ifndef FGPROF_READER_MODULE_PACKET_H
#define FGPROF_READER_MODULE_PACKET_H

#include "base/packet.h"
#include "elf/module.h"
#include "reader/packet_kind.h"

/* `number` is the packet's first. Returns 0 or a negative errno. */
int module_packet_send(int socket, enum packet_kind kind, uint64_t number,
                       const struct module *module);

/* Makes the module from the part of `body` after the number. Takes over `fd`. Sets *ret_module
 * unless memory ran out, even if the module can't be read. Returns 0 or a negative errno. */
int module_packet_take(struct bytes *body, int fd, struct module **ret_module);

/* What elf_file_read has found. */
void module_packet_put_headers(struct buffer *body, const struct module *module);
/* Takes the headers, and leaves what follows in `body`. Returns false if they are invalid, or
 * memory is short; the module may then have some of them. */
bool module_packet_take_headers(struct bytes *body, struct module *module);

#endif
