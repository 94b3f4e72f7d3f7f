# Debian packages built with CPack by scripts/package: the program, which needs no library of its
# own; the library; and the files needed to build with it.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_VENDOR "fgprof-c")
set(CPACK_PACKAGE_CONTACT "The fgprof-c authors <fgprof-c@localhost>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL program library development)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME fgprof-c)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION devel)
# Debug information is fetched with this library, which is loaded only when that is requested.
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS "libcurl4, libdebuginfod1")
# For the agent's library, as below.
set(CPACK_DEBIAN_PROGRAM_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_SOURCE_DIR}/cmake/debian/triggers)
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION
    "wall-clock sampling profiler for running processes
Shows where the wall-clock time of native processes goes, on the CPU and off
it: it samples the stacks of all threads from outside, without waking those
that sleep.
.
It writes flame graphs as a page for the browser, profiles for speedscope and
pprof, folded stacks and text, keeps recordings to convert and compare; shows
live, as top does, where the time goes; and dumps each thread's stack once,
with what the thread waits for.")

set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libfgprof${PROJECT_VERSION_MAJOR})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA
    ${CMAKE_CURRENT_SOURCE_DIR}/cmake/debian/triggers)
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION
    "wall-clock sampling profiler, as a library
Samples the stacks of all threads of other processes from outside, on the CPU
and off it, and writes the profile in the formats of fgprof-c.
.
This package holds the shared library.")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libfgprof-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_COMPONENT_DEVELOPMENT_DEPENDS library)
# pkg-config needs what fgprof.pc requires of these, even to link with the shared library.
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "libbpf-dev, libelf-dev, libiberty-dev, liblzma-dev, zlib1g-dev")
if(FGPROF_ZSTD)
  string(APPEND CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS ", libzstd-dev")
endif()
if(ZYDIS_LIBRARY)
  string(APPEND CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS ", libzydis-dev")
endif()
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION
    "wall-clock sampling profiler, to build with
Samples the stacks of all threads of other processes from outside, on the CPU
and off it, and writes the profile in the formats of fgprof-c.
.
This package holds the header, the static library and the pkg-config file.")

# The files of each package below doc: changelogs are compressed, as Debian's policy requires.
string(TIMESTAMP FGPROF_PACKAGE_DATE "%a, %d %b %Y %H:%M:%S +0000" UTC)
configure_file(cmake/debian/changelog.in changelog.Debian @ONLY)
add_custom_command(
  OUTPUT changelog.Debian.gz
  COMMAND gzip -9nc changelog.Debian > changelog.Debian.gz
  DEPENDS ${CMAKE_CURRENT_BINARY_DIR}/changelog.Debian
  VERBATIM)
add_custom_target(changelog_debian ALL DEPENDS changelog.Debian.gz)
foreach(component PROGRAM LIBRARY DEVELOPMENT)
  string(TOLOWER ${component} part)
  set(directory ${CMAKE_INSTALL_DATADIR}/doc/${CPACK_DEBIAN_${component}_PACKAGE_NAME})
  install(FILES LICENSE RENAME copyright DESTINATION ${directory} COMPONENT ${part})
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/CHANGELOG.md.gz RENAME changelog.gz
          DESTINATION ${directory} COMPONENT ${part})
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/changelog.Debian.gz
          DESTINATION ${directory} COMPONENT ${part})
endforeach()
include(CPack)
