include(GNUInstallDirs)

# A file made of NAME.in, in which @prefix@ and @bindir@ are those that `cmake --install` is given.
function(install_with_prefix name folder component)
  set(prefix "@prefix@")
  set(bindir "@bindir@")
  set(made ${CMAKE_CURRENT_BINARY_DIR}/${name})
  configure_file(${name}.in ${made}.in @ONLY)
  install(CODE "get_filename_component(prefix \"\${CMAKE_INSTALL_PREFIX}\" ABSOLUTE)
                set(bindir \"\${prefix}/${CMAKE_INSTALL_BINDIR}\")
                configure_file(\"${made}.in\" \"${made}\" @ONLY)" COMPONENT ${component})
  install(FILES ${made} DESTINATION ${folder} COMPONENT ${component})
endfunction()
