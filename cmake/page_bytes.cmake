# Writes the sources of the HTML page to OUTPUT as C arrays, page_html, page_css and page_js:
#   cmake -DSOURCE=src/output/page -DSCRIPTS=model.js,draw.js -DOUTPUT=page.inc -P page_bytes.cmake
include(${CMAKE_CURRENT_LIST_DIR}/append_bytes.cmake)

string(REPLACE "," ";" SCRIPTS "${SCRIPTS}")
file(WRITE "${OUTPUT}" "")
foreach(array "page_html" "page_css" "page_js")
  set(sources ${SCRIPTS})
  if(array MATCHES "html|css")
    string(REPLACE "_" "." sources ${array})
  endif()
  file(APPEND "${OUTPUT}" "static const char ${array}[] = {\n")
  foreach(source IN LISTS sources)
    append_bytes("${SOURCE}/${source}")
  endforeach()
  file(APPEND "${OUTPUT}" "0};\n")
endforeach()
