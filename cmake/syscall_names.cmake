# Writes a row {__NR_name, "name"}, for each system call that the compiler's headers know, to OUTPUT:
#   cmake -DCOMPILER=cc -DOUTPUT=syscall_names.inc -P syscall_names.cmake
execute_process(COMMAND ${COMPILER} -E -dM -include sys/syscall.h -x c /dev/null
                OUTPUT_VARIABLE macros RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${COMPILER} does not preprocess <sys/syscall.h>")
endif()
string(REGEX MATCHALL "#define __NR_[a-z0-9_]+ " macros "${macros}")
set(rows "")
foreach(macro IN LISTS macros)
  string(REGEX REPLACE "#define __NR_([a-z0-9_]+) " "\\1" name "${macro}")
  # The number of calls, and the start of an architecture's own (asm-generic/unistd.h): not calls.
  if(NOT name MATCHES "^(syscalls|arch_specific_syscall)$")
    string(APPEND rows "{__NR_${name}, \"${name}\"},\n")
  endif()
endforeach()
if(rows STREQUAL "")
  message(FATAL_ERROR "${COMPILER} knows no system call")
endif()
file(WRITE "${OUTPUT}" "${rows}")
