# Helpers for the one shape every folder has: a static library of the folder's sources.

# Warnings and sanitizers for our own code only; third-party headers are SYSTEM.
add_library(muster_options INTERFACE)
target_compile_options(muster_options INTERFACE
  -Wall -Wextra -Wconversion -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Werror
  # Designated initializers leave members to their defaults on purpose.
  -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND MUSTER_SANITIZE)
  # The sanitizers' instrumentation makes g++ 12 report impossible paths inside libstdc++ headers.
  target_compile_options(muster_options INTERFACE -Wno-maybe-uninitialized -Wno-restrict)
endif()
if(MUSTER_SANITIZE)
  target_compile_options(muster_options INTERFACE
    -fsanitize=${MUSTER_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  if(MUSTER_SANITIZE MATCHES "undefined")
    # AddressSanitizer sees what these four would report, and together they nearly double the time
    # to compile a file.
    target_compile_options(muster_options INTERFACE -fno-sanitize=null,alignment,vptr,object-size)
  endif()
  target_link_options(muster_options INTERFACE -fsanitize=${MUSTER_SANITIZE})
endif()

find_program(MUSTER_CCACHE ccache)
if(MUSTER_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros ${MUSTER_CCACHE})
endif()

# muster_library(<folder name> [dependency targets...]): every .cpp of the folder, except main.cpp.
function(muster_library name)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
  add_library(muster_${name} STATIC ${sources})
  target_include_directories(muster_${name} PUBLIC ${CMAKE_SOURCE_DIR})
  target_link_libraries(muster_${name} PUBLIC muster_options ${ARGN})
  set_target_properties(muster_${name} PROPERTIES LINKER_LANGUAGE CXX)
endfunction()

# muster_test(<name> <labels> [dependency targets...]): one GoogleTest program from every *_test.cpp
# of the folder; each TEST is a ctest case.
function(muster_test name labels)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*_test.cpp)
  if(NOT sources)
    return()
  endif()
  add_executable(${name}_test ${sources})
  target_link_libraries(${name}_test PRIVATE muster_options ${ARGN} GTest::gtest GTest::gmock GTest::gtest_main)
  gtest_discover_tests(${name}_test TEST_PREFIX "${name}." PROPERTIES LABELS "${labels}"
    DISCOVERY_TIMEOUT 60 DISCOVERY_MODE PRE_TEST)
endfunction()
