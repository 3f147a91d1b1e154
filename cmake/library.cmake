# brisk as a library: libbrisk.a, or libbrisk.so with -DBUILD_SHARED_LIBS=ON. The target is `libbrisk`, since `brisk` is the
# program; others link to brisk::brisk.
#   cmake --build build --target libbrisk
#   cmake --install build --component development --prefix /usr/local      # library, headers, find_package(brisk)
# How it is used: docs/library.md, examples/embed.
include(GNUInstallDirs)

set(brisk_modules base tensor ops models text data optim job hub report checkpoint infer train api)
add_library(libbrisk EXCLUDE_FROM_ALL)
add_library(brisk::brisk ALIAS libbrisk)
set_target_properties(libbrisk PROPERTIES OUTPUT_NAME brisk EXPORT_NAME brisk LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION}
                      SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
foreach(module ${brisk_modules} ops_avx2 ops_avx512 ops_avx512bf16 ops_amx ops_hopper)
  if(TARGET brisk_${module})
    target_sources(libbrisk PRIVATE $<TARGET_OBJECTS:brisk_${module}>)
  endif()
endforeach()
target_include_directories(libbrisk INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                           $<BUILD_INTERFACE:${CMAKE_BINARY_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(libbrisk INTERFACE cxx_std_20)
# What the modules stand on outside of brisk. fmt and nlohmann_json are in no public header.
target_link_libraries(libbrisk PRIVATE fmt::fmt Threads::Threads ${CMAKE_DL_LIBS} $<$<BOOL:${BRISK_HAVE_CUDA}>:CUDA::cudart_static>
  $<$<BOOL:${ZLIB_FOUND}>:ZLIB::ZLIB>)
if(ZSTD_INCLUDE AND ZSTD_LIBRARY)
  target_link_libraries(libbrisk PRIVATE ${ZSTD_LIBRARY})
endif()
if(DNNL_INCLUDE AND DNNL_LIBRARY)
  target_link_libraries(libbrisk PRIVATE ${DNNL_LIBRARY})
elseif(CBLAS_INCLUDE AND CBLAS_LIBRARY)
  target_link_libraries(libbrisk PRIVATE ${CBLAS_LIBRARY})
endif()

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
