/* Removes the template arguments from the source name of a C++ function. */
#ifndef FGPROF_SYMBOL_NAMES_FOLD_NAME_H
#define FGPROF_SYMBOL_NAMES_FOLD_NAME_H

/* Changes "std::vector<int, std::allocator<int> >::push_back" to "std::vector::push_back", in
 * place. The '<' of operators stays ("operator<<"), and so does one that a name begins with
 * ("<init>"). A name with unbalanced brackets stays as it is. Returns 0 or -ENOMEM. */
int fold_name(char *name);

#endif
