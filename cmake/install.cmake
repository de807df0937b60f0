include(GNUInstallDirs)

# A file made of NAME.in, in which @prefix@ and @bindir@ are those that `cmake --install` is given.
function(install_with_prefix name folder component)
  set(prefix "@prefix@")
  set(bindir "@bindir@")
  set(in ${CMAKE_CURRENT_BINARY_DIR}/${name}.in)
  configure_file(${name}.in ${in} @ONLY)
  # Straight to where it goes: several may install from one build folder at a time.
  install(CODE "get_filename_component(prefix \"\${CMAKE_INSTALL_PREFIX}\" ABSOLUTE)
                set(bindir \"\${prefix}/${CMAKE_INSTALL_BINDIR}\")
                set(made \"\${prefix}/${folder}/${name}\")
                message(STATUS \"Installing: \$ENV{DESTDIR}\${made}\")
                configure_file(\"${in}\" \"\$ENV{DESTDIR}\${made}\" @ONLY)
                list(APPEND CMAKE_INSTALL_MANIFEST_FILES \"\${made}\")" COMPONENT ${component})
endfunction()
