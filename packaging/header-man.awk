# The manual page of a C library, made of its headers: comments become paragraphs, declarations stay.
# usage: awk -v name=libtracelake -v version=0.1.0 -f header-man.awk HEADER…
function roff(s) { gsub(/\\/, "\\e", s); gsub(/-/, "\\-", s); if (s ~ /^[.']/) s = "\\&" s; return s }
function code(on) {
  if (on && !in_code) { print ".PP"; print ".nf" }
  if (!on && in_code) print ".fi"
  in_code = on
}
BEGIN {
  printf ".\\\" Made of the headers.\n.TH %s 3 \"\" \"tracelake %s\" \"Library Functions\"\n", name, version
}
FNR == 1 && /SPDX/ { next }
/^\/\* ---- / { # a section's head
  code(0)
  sub(/^\/\* -+ /, ""); sub(/ -+ \*\/$/, "")
  print ".SH " toupper(roff($0))
  next
}
/^\/\*/ && !in_comment {
  code(0)
  in_comment = 1
  sub(/^\/\*+ ?/, "")
  print titled ? ".PP" : ".SH NAME"
}
in_comment {
  ended = /\*\/ *$/
  sub(/ *\*\/ *$/, "")
  sub(/^ \* ?/, "")
  if (!titled && $0 != "") {
    print roff(name) " \\- " roff(summary)
    print ".SH SYNOPSIS\n.nf\n#include <" header ">\n.fi\n.PP\npkg\\-config \\-\\-cflags \\-\\-libs " pc
    print ".SH DESCRIPTION"
    titled = 1
  }
  if ($0 ~ /^ /) { # an example
    if (!example) print ".PP\n.nf"
    example = 1
  } else if (example) { print ".fi\n.PP"; example = 0 }
  if ($0 == "") print ".PP"; else print roff($0)
  if (ended) { if (example) print ".fi"; example = 0; in_comment = 0 }
  next
}
/^#/ || /extern "C"/ { skipping = /\\$/; next }
skipping { skipping = /\\$/; next }
/^}$/ && !in_code { next }
/^$/ { if (in_code && depth <= 0) code(0); next }
{
  line = $0
  gsub(/TRACELAKE_MUST_USE |TRACELAKE_API /, "", line)
  if (depth == 0) sub(/^              +/, "        ", line) # an argument below the first one
  code(1)
  print roff(line)
  depth += gsub(/\{/, "{", line) - gsub(/\}/, "}", line)
}
END { code(0); print ".SH \"SEE ALSO\"\ntracelake(1)" }
