# brisk as a library: libbrisk.a, or libbrisk.so with -DBUILD_SHARED_LIBS=ON. The target is `libbrisk`, since `brisk` is the
# program; others link to brisk::brisk.
#   cmake --build build --target libbrisk
#   cmake --install build --component development --prefix /usr/local      # library, headers, find_package(brisk)
# How it is used: docs/library.md, examples/embed.
include(GNUInstallDirs)

# Libraries that have no CMake package everywhere: briskConfig.cmake looks for them by their names on the machine that it is
# used on, so that no path of this one is written into it.
set(brisk_plain_libraries "")  # <target>:<names>, ...
function(brisk_plain_library name file)
  add_library(brisk::${name} UNKNOWN IMPORTED)
  set_target_properties(brisk::${name} PROPERTIES IMPORTED_LOCATION ${file})
  set(brisk_plain_libraries ${brisk_plain_libraries} "${name}:${ARGN}" PARENT_SCOPE)
endfunction()
if(ZSTD_INCLUDE AND ZSTD_LIBRARY)
  brisk_plain_library(zstd ${ZSTD_LIBRARY} zstd)
endif()
if(DNNL_INCLUDE AND DNNL_LIBRARY)
  brisk_plain_library(dnnl ${DNNL_LIBRARY} dnnl)
elseif(CBLAS_INCLUDE AND CBLAS_LIBRARY)
  brisk_plain_library(cblas ${CBLAS_LIBRARY} openblas,cblas)
endif()

set(brisk_modules base comm tensor image ops models text data score optim job hub report checkpoint infer train api)
function(brisk_library target)  # from the modules' objects: links, and compiles nothing
  add_library(${target} ${ARGN} EXCLUDE_FROM_ALL)
  set_target_properties(${target} PROPERTIES OUTPUT_NAME brisk EXPORT_NAME brisk LINKER_LANGUAGE CXX
                        VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  foreach(module ${brisk_modules} ops_avx2 ops_avx512 ops_avx512bf16 ops_amx ops_hopper)
    if(TARGET brisk_${module})
      target_sources(${target} PRIVATE $<TARGET_OBJECTS:brisk_${module}>)
    endif()
  endforeach()
  target_include_directories(${target} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                             $<BUILD_INTERFACE:${CMAKE_BINARY_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(${target} INTERFACE cxx_std_20)
  # What the modules stand on outside of brisk. fmt and nlohmann_json are in no public header.
  target_link_libraries(${target} PRIVATE fmt::fmt Threads::Threads ${CMAKE_DL_LIBS}
    $<$<BOOL:${BRISK_HAVE_CUDA}>:CUDA::cudart_static> $<$<BOOL:${ZLIB_FOUND}>:ZLIB::ZLIB>
    $<$<BOOL:${PNG_FOUND}>:PNG::PNG> $<$<BOOL:${JPEG_FOUND}>:JPEG::JPEG>)
  foreach(library ${brisk_plain_libraries})
    string(REGEX REPLACE ":.*" "" library ${library})
    target_link_libraries(${target} PRIVATE brisk::${library})
  endforeach()
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "SHARED_LIBRARY")
    # Hidden visibility leaves what the standard library's templates become; nobody else needs that either.
    target_link_options(${target} PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/exported_symbols)
    set_target_properties(${target} PROPERTIES LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/exported_symbols)
  endif()
endfunction()
brisk_library(libbrisk)
add_library(brisk::brisk ALIAS libbrisk)
# Always shared, for a test of what it exports; not installed.
brisk_library(libbrisk_shared SHARED)
set_target_properties(libbrisk_shared PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/shared)

install(TARGETS libbrisk EXPORT brisk COMPONENT development EXCLUDE_FROM_ALL)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/brisk ${CMAKE_BINARY_DIR}/include/brisk
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development EXCLUDE_FROM_ALL FILES_MATCHING PATTERN "*.h")

include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/brisk)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/briskConfig.cmake.in ${CMAKE_BINARY_DIR}/briskConfig.cmake
                              INSTALL_DESTINATION ${package_folder})
# Not yet stable: what was built against one minor version is not for another.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/briskConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/briskConfig.cmake ${CMAKE_BINARY_DIR}/briskConfigVersion.cmake
        DESTINATION ${package_folder} COMPONENT development EXCLUDE_FROM_ALL)
install(EXPORT brisk FILE briskTargets.cmake NAMESPACE brisk:: DESTINATION ${package_folder} COMPONENT development
        EXCLUDE_FROM_ALL)
