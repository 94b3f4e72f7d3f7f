# Appends a file's contents to OUTPUT, as the initializers of a C array.
function(append_bytes path)
  file(READ "${path}" hex HEX)
  string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hex "${hex}")
  file(APPEND "${OUTPUT}" "${hex}")
endfunction()
