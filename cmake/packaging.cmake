# What an installation holds besides the program, and the Debian package.
#   cmake --install build --prefix /usr/local
#   scripts/package.sh                               # build/package/brisk_<version>_<architecture>.deb
include(GNUInstallDirs)

# The manual page and the completion scripts are what the program itself says of its commands and options.
set(documents ${CMAKE_BINARY_DIR}/documents)
file(MAKE_DIRECTORY ${documents})
find_program(GZIP_PROGRAM gzip REQUIRED)
add_custom_command(
  OUTPUT ${documents}/brisk.1.gz ${documents}/brisk.bash ${documents}/_brisk ${documents}/brisk.fish
  COMMAND brisk manual > ${documents}/brisk.1
  COMMAND ${GZIP_PROGRAM} -9nf ${documents}/brisk.1  # n: no time in it, so that two builds are the same
  COMMAND brisk completion bash > ${documents}/brisk.bash
  COMMAND brisk completion zsh > ${documents}/_brisk
  COMMAND brisk completion fish > ${documents}/brisk.fish
  DEPENDS brisk
  COMMENT "Writing the manual page and the completion scripts"
  VERBATIM)
add_custom_target(documents ALL DEPENDS ${documents}/brisk.1.gz)

install(TARGETS brisk RUNTIME)
install(FILES ${documents}/brisk.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${documents}/brisk.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME brisk)
install(FILES ${documents}/brisk.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
# Debian's zsh looks for what packages bring in a folder of its own; elsewhere, and under /usr/local, it is site-functions.
install(CODE "
  set(folder site-functions)
  if(CMAKE_INSTALL_PREFIX STREQUAL \"/usr\" AND EXISTS /etc/debian_version)
    set(folder vendor-completions)
  endif()
  file(INSTALL \"${documents}/_brisk\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/zsh/\${folder}\")")
install(DIRECTORY examples/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples FILES_MATCHING PATTERN "*.json"
        PATTERN embed EXCLUDE)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES cmake/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR})
# Header libraries become part of the program, and ask that their notices go with it.
foreach(library nlohmann-json3-dev libcli11-dev)
  if(EXISTS /usr/share/doc/${library}/copyright)
    install(FILES /usr/share/doc/${library}/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR}/third-party RENAME ${library})
  endif()
endforeach()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_VENDOR "brisk developers")
set(CPACK_PACKAGE_CONTACT "brisk developers")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "trains transformer language models fast on the machine at hand")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
    "brisk trains transformers as fast as the processor allows, and shows where
every millisecond went. A job is one JSON file, text is taken as it is (plain,
compressed, JSON lines), and tokenizers, checkpoints and reports come with it.
One program with kernels for AVX2, AVX-512 and AMX, chosen when it starts.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "brisk developers")
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)  # Depends: the packages of the libraries it is linked to
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
    WORLD_EXECUTE)
include(CPack)
