# What `make install` installs: the library (static and shared), its public headers, the module, the
# command, its manual and its completion, a CMake package and two pkg-config files. The last two find
# the rest by their own place, so the tree may be moved.
include(CMakePackageConfigHelpers)

set(completion ${CMAKE_CURRENT_BINARY_DIR}/completion/semel)
add_custom_command(OUTPUT ${completion} DEPENDS semel_cli
                   COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_CURRENT_BINARY_DIR}/completion
                   COMMAND semel_cli completion bash > ${completion} VERBATIM)
add_custom_target(product ALL DEPENDS semel semel_rocksdb semel_cli ${completion})
if(TARGET semel_module)
  add_dependencies(product semel_module)
  # Servers load only a file that may be executed. Debian's CMake installs shared objects without that.
  install(TARGETS semel_module DESTINATION ${CMAKE_INSTALL_LIBDIR}/semel
          PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
                      WORLD_READ WORLD_EXECUTE)
endif()

install(TARGETS semel_cli)
install(FILES ${PROJECT_SOURCE_DIR}/cli/semel.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${completion} DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(TARGETS semel EXPORT semelTargets)
install(TARGETS semel_rocksdb EXPORT semelRocksDBTargets)
if(SEMEL_SHARED)
  install(TARGETS semel_shared EXPORT semelTargets)
  install(TARGETS semel_rocksdb_shared EXPORT semelRocksDBTargets)
  add_dependencies(product semel_shared semel_rocksdb_shared)
endif()
include(SemelHeaders)
foreach(header ${semel_public_headers})
  if(NOT EXISTS ${PROJECT_SOURCE_DIR}/${header})
    message(WARNING "cmake/SemelHeaders.cmake names ${header}, which is not there")
    continue()
  endif()
  cmake_path(GET header PARENT_PATH folder)
  install(FILES ${PROJECT_SOURCE_DIR}/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${folder})
endforeach()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/semel)
install(EXPORT semelTargets NAMESPACE semel:: DESTINATION ${package_dir})
install(EXPORT semelRocksDBTargets NAMESPACE semel:: DESTINATION ${package_dir})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/semelConfig.cmake.in semelConfig.cmake
                              INSTALL_DESTINATION ${package_dir}
                              NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(semelConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/semelConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/semelConfigVersion.cmake DESTINATION ${package_dir})

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
