# Writes a file as the initializers of a C array: cmake -DSOURCE=FILE -DOUTPUT=FILE.inc -P file_bytes.cmake
include(${CMAKE_CURRENT_LIST_DIR}/append_bytes.cmake)

file(WRITE "${OUTPUT}" "")
append_bytes("${SOURCE}")
