# What makes faults harder to exploit, for all that is installed: semel_harden(target).
#
# Flags of a distribution (CXXFLAGS, LDFLAGS) come first and stay. Where they set the level of
# _FORTIFY_SOURCE, or nothing is optimised, it is left alone. Sanitizers have checks of their own.
# -DSEMEL_HARDEN=OFF leaves all of it to the caller. tests/hardening looks at what comes out.
include(CheckCXXCompilerFlag)
include(CheckPIESupported)

option(SEMEL_HARDEN "Protect the stack, returns, jumps and relocations of what is installed" ON)

check_pie_supported(LANGUAGES CXX)
set(semel_harden_compile "")
set(semel_harden_link "")
set(semel_harden_fully FALSE)
if(SEMEL_HARDEN AND NOT SEMEL_SANITIZE AND NOT SEMEL_FUZZ AND NOT SEMEL_COVERAGE)
  # Not every processor has each of them.
  foreach(flag -fstack-protector-strong -fstack-clash-protection -fcf-protection=full)
    string(MAKE_C_IDENTIFIER "semel_has${flag}" known)
    check_cxx_compiler_flag(${flag} ${known})
    if(${known})
      list(APPEND semel_harden_compile ${flag})
    endif()
  endforeach()
  string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
  set(flags "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${build_type}}")
  if(flags MATCHES "-O[1-9s]")
    set(semel_harden_fully TRUE)
  endif()
  if(semel_harden_fully AND NOT flags MATCHES "_FORTIFY_SOURCE")
    # Not 3: g++ 12 then calls a checked function for copies of a few bytes that it would otherwise
    # inline. `semel generate` takes six times as long.
    list(APPEND semel_harden_compile -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
  endif()
  set(semel_harden_link -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
endif()

function(semel_harden target)
  target_compile_options(${target} PRIVATE ${semel_harden_compile})
  target_link_options(${target} PRIVATE ${semel_harden_link})
endfunction()
