# What `make install` installs: the library, its headers, the module, the command, its manual and its completion,
# a CMake package and a pkg-config file. The last two find the rest by their own place, so the tree
# may be moved.
include(CMakePackageConfigHelpers)

set(completion ${CMAKE_CURRENT_BINARY_DIR}/completion/semel)
add_custom_command(OUTPUT ${completion} DEPENDS semel_cli
                   COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_CURRENT_BINARY_DIR}/completion
                   COMMAND semel_cli completion bash > ${completion} VERBATIM)
add_custom_target(product ALL DEPENDS semel semel_rocksdb semel_cli ${completion})
if(TARGET semel_module)
  add_dependencies(product semel_module)
  install(TARGETS semel_module DESTINATION ${CMAKE_INSTALL_LIBDIR}/semel)
endif()

install(TARGETS semel_cli)
install(FILES ${PROJECT_SOURCE_DIR}/cli/semel.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${completion} DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(TARGETS semel EXPORT semelTargets)
install(TARGETS semel_rocksdb EXPORT semelRocksDBTargets)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/semel DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h" PATTERN "*_test.h" EXCLUDE
        # They need the headers of RocksDB, which users of the library do not.
        PATTERN "rocksdb_plan.h" EXCLUDE PATTERN "rocksdb_status.h" EXCLUDE)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/semel)
install(EXPORT semelTargets NAMESPACE semel:: DESTINATION ${package_dir})
install(EXPORT semelRocksDBTargets NAMESPACE semel:: DESTINATION ${package_dir})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/semelConfig.cmake.in semelConfig.cmake
                              INSTALL_DESTINATION ${package_dir}
                              NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(semelConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/semelConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/semelConfigVersion.cmake DESTINATION ${package_dir})

# Who links the static library links what it uses too; who links the shared one need not know of it.
if(BUILD_SHARED_LIBS)
  set_target_properties(semel_cli PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
  set(requires "")
  set(rocksdb_requires "semel")
else()
  set(requires "libsodium libzstd")
  set(rocksdb_requires "semel rocksdb")
endif()
set(pkgconfig_dir ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${pkgconfig_dir} OUTPUT_VARIABLE up)
foreach(dir LIBDIR INCLUDEDIR)
  cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_${dir} BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX}
             OUTPUT_VARIABLE ${dir})
endforeach()
configure_file(${CMAKE_CURRENT_LIST_DIR}/semel.pc.in semel.pc @ONLY)
configure_file(${CMAKE_CURRENT_LIST_DIR}/semel-rocksdb.pc.in semel-rocksdb.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/semel.pc ${CMAKE_CURRENT_BINARY_DIR}/semel-rocksdb.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
