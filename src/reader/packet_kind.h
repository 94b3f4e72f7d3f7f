/* What the packets are (base/packet.h) that readers and those that ask them send. */
#ifndef FGPROF_READER_PACKET_KIND_H
#define FGPROF_READER_PACKET_KIND_H

enum packet_kind {
    /* To the reader: */
    PACKET_OPEN,      /* a module: its serial, path, whether it is readable, its error; the file */
    PACKET_NAME,      /* addresses of that module: how to show names, count, addresses */
    PACKET_VARIABLE,  /* which variable is at an address of that module */
    PACKET_CLASS,     /* to which class objects belong that point to that address */
    PACKET_SHOW,      /* how to show names, and a name */
    PACKET_FILE,      /* what was asked for: 0 or a negative errno, a path or none; the file */
    PACKET_LOAD,      /* the same as PACKET_OPEN, with the module's slot in place of its number */
    PACKET_LOOK_UP,   /* for unwinding: the module's slot, what to look up */
    PACKET_QUERY,     /* the module's slot, and what to look up by name */
    PACKET_HEADERS,   /* the module's slot: what its headers say; and queries */
    PACKET_READ_CODE, /* a perf map or jitdump: how far it was read, how much to read; the file */
    /* From the reader: */
    PACKET_OPENED,    /* before the first symbols: 0 or a negative errno, and why */
    PACKET_SYMBOLS,   /* of the next addresses: count, symbols */
    PACKET_FOUND,     /* the variable or class: 0 or a negative errno, name, offset */
    PACKET_SHOWN,     /* the name to show, or none if it is the same */
    PACKET_WANTED,    /* it needs a file: its path */
    PACKET_FETCHED,   /* it needs a file from a server: the build id's length, and its bytes */
    PACKET_LOOKED_UP, /* 0 or a negative errno, the answer */
    PACKET_ANSWERED,  /* the same, to PACKET_QUERY and PACKET_HEADERS; then, for each query, whether
                         its symbol was found, and the answer */
    PACKET_CODE_READ, /* the same: how far it was read, what it says */
};

#endif
