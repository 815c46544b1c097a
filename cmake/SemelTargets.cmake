# What each kind of target is made of, so that adding one takes a line:
#
#   semel_test(name SOURCES a_test.cc [LIBS ...] [ARGS ...])   a GoogleTest program, run by ctest
#   semel_fuzzer(name [LIBS ...])                        fuzz/fuzz_<name>.cc, seeds in fuzz/corpus/<name>
#   semel_bench(name SOURCES ... [LIBS ...])             a program of bench/, in bin/bench
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)  # the module is a shared object
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${semel_BINARY_DIR}/bin)

find_program(SEMEL_CCACHE ccache)
if(SEMEL_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${SEMEL_CCACHE})
endif()

# Warnings, sanitizers and coverage: for our own targets, never for those who link us.
add_library(semel_options INTERFACE)
target_compile_options(semel_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor)
if(SEMEL_WERROR)
  target_compile_options(semel_options INTERFACE -Werror)
endif()
if(SEMEL_SANITIZE)
  target_compile_options(semel_options INTERFACE -fsanitize=${SEMEL_SANITIZE} -fno-omit-frame-pointer
                         -fno-sanitize-recover=all)
  target_link_options(semel_options INTERFACE -fsanitize=${SEMEL_SANITIZE})
  # In instrumented code g++ takes variables of <regex> for uninitialized that are not.
  target_compile_options(semel_options INTERFACE
                         $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
endif()
if(SEMEL_FUZZ)
  # Counters in the library too: without them libFuzzer does not see which inputs reach new code.
  target_compile_options(semel_options INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(SEMEL_COVERAGE)
  target_compile_options(semel_options INTERFACE --coverage -fprofile-update=atomic)
  target_link_options(semel_options INTERFACE --coverage)
endif()

function(semel_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS;ARGS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE semel semel_options test_support
                        GTest::gtest_main rapidcheck ${ARG_LIBS})
  # Typed suites instantiate much and run it once: optimising all of it takes longer than it saves.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${semel_BINARY_DIR}/bin/tests)
  add_test(NAME ${name} COMMAND ${name} ${ARG_ARGS} WORKING_DIRECTORY ${semel_SOURCE_DIR})
  # A fixed seed: a run can be repeated. Started by hand, a test takes another seed and prints it.
  set_tests_properties(${name} PROPERTIES ENVIRONMENT RC_PARAMS=seed=1)
endfunction()

# With SEMEL_FUZZ a libFuzzer program; otherwise the same entry point under fuzz/smoke.cc, which
# ctest runs over the seeds and some thousand mutations of them.
function(semel_fuzzer name)
  cmake_parse_arguments(ARG "" "" "LIBS" ${ARGN})
  add_executable(fuzz_${name} ${semel_SOURCE_DIR}/fuzz/fuzz_${name}.cc)
  target_link_libraries(fuzz_${name} PRIVATE semel semel_options ${ARG_LIBS})
  set_target_properties(fuzz_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${semel_BINARY_DIR}/bin/fuzz)
  if(SEMEL_FUZZ)
    target_compile_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(fuzz_${name} PRIVATE ${semel_SOURCE_DIR}/fuzz/smoke.cc)
    add_test(NAME fuzz_${name} COMMAND fuzz_${name} ${semel_SOURCE_DIR}/fuzz/corpus/${name})
  endif()
endfunction()

function(semel_bench name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE semel semel_options ${ARG_LIBS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${semel_BINARY_DIR}/bin/bench)
endfunction()
