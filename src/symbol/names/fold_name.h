/* Takes the template arguments out of the source name of a C++ function. */
#ifndef FGPROF_SYMBOL_NAMES_FOLD_NAME_H
#define FGPROF_SYMBOL_NAMES_FOLD_NAME_H

/* Changes "std::vector<int, std::allocator<int> >::push_back" to "std::vector::push_back", in
 * place. The '<' of operators stays ("operator<<"), and that of a name which begins with one
 * ("<init>"). What is not balanced stays as it is. Returns 0 or -ENOMEM. */
int fold_name(char *name);

#endif
