#!/usr/bin/env bash
# A shared libbrisk exports what include/brisk marks with BRISK_API, all of it and nothing else.
#   exported_symbols.sh LIBRARY INCLUDE_FOLDER
set -euo pipefail
library=$1 headers=$2
# "class BRISK_API Tokenizer ..." allows all of the class; "BRISK_API void name(..." the function, or the member.
classes=$(grep -rhoE '(class|struct) BRISK_API [A-Za-z]+' "$headers" | awk '{ print $3 }' | sort -u)
functions=$(grep -rhE 'BRISK_API' "$headers" | grep -vE '(class|struct) BRISK_API|#define' | grep -oE '~?[A-Za-z_]+\(' | tr -d '(' |
  sort -u)
[ -n "$classes" ] && [ -n "$functions" ]
allowed=$(printf '^(vtable for |typeinfo for |typeinfo name for )?brisk::(%s)(::.*)?$\n' $(echo $classes | tr ' ' '|')
  printf '^brisk::([A-Za-z]+::)?(%s)(\\[abi:cxx11\\])?\\(' $(echo $functions | tr ' ' '|'))
exported=$(nm -DC --defined-only "$library" | sed -E 's/^[0-9a-f]+ . //')
unmarked=$(grep -vE "$allowed" <<<"$exported" || true)
[ -z "$unmarked" ] || { echo "$library exports what BRISK_API does not mark:"; echo "$unmarked"; exit 1; }
for function in $functions; do
  grep -qE "^brisk::([A-Za-z]+::)?$function(\[abi:cxx11\])?\(" <<<"$exported" ||
    { echo "$library does not export $function, which BRISK_API marks"; exit 1; }
done
echo "$(wc -l <<<"$exported") symbols"
