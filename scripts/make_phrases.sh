#!/usr/bin/env bash
# A parallel text for examples/demo-translate.json: so many lines, each with a phrase of days and times in English, a tab and the
# same in German. Always the same lines, none twice.
#   scripts/make_phrases.sh 20000 > phrases.tsv
set -euo pipefail
awk -v lines="${1:?how many lines}" '
  function draw(count) { state = (state * 16807) % 2147483647; return int(state / 1000) % count }
  function list(text, to,  count, parts, i) { count = split(text, parts, "|"); for (i = 1; i <= count; ++i) to[i - 1] = parts[i]; return count }
  BEGIN {
    state = 7
    list("Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday", day)
    list("Montag|Dienstag|Mittwoch|Donnerstag|Freitag|Samstag|Sonntag", tag)
    list("January|February|March|April|May|June|July|August|September|October|November|December", month)
    list("Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember", monat)
    list("first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth", ordinal)
    list("ersten|zweiten|dritten|vierten|fünften|sechsten|siebten|achten|neunten|zehnten|elften|zwölften", ordnung)
    list("one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve", hour)
    list("eins|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf", stunde)
    list("we are at home|we will meet|the shop is closed|the train leaves|she calls her mother|they play in the garden", what)
    list("sind wir zu Hause|treffen wir uns|ist der Laden geschlossen|fährt der Zug ab|ruft sie ihre Mutter an|spielen sie im Garten", was)
    for (line = 0; line < lines;) {
      d = draw(7); m = draw(12); y = 1950 + draw(100); h = draw(12); w = draw(6)
      if (draw(2)) { n = draw(12); date = "the " ordinal[n] " of " month[m]; datum = "dem " ordnung[n] " " monat[m] }
      else { n = 1 + draw(28); e = n == 1 || n == 21 ? "st" : n == 2 || n == 22 ? "nd" : n == 3 || n == 23 ? "rd" : "th"
             date = "the " n e " of " month[m]; datum = "dem " n ". " monat[m] }
      kind = draw(4)
      if (kind == 0) { time = "at " hour[h] " o\047clock"; zeit = "um " (h == 0 ? "ein" : stunde[h]) " Uhr" }
      if (kind == 1) { time = "at half past " hour[h]; zeit = "um halb " stunde[(h + 1) % 12] }
      if (kind == 2) { time = "at a quarter past " hour[h]; zeit = "um Viertel nach " stunde[h] }
      if (kind == 3) { time = "at a quarter to " hour[h]; zeit = "um Viertel vor " stunde[h] }
      form = draw(4)
      if (form == 0) { en = "on " day[d] ", " date " " y ", " time; de = "am " tag[d] ", " datum " " y ", " zeit }
      if (form == 1) { en = what[w] " on " day[d] ", " date " " y ", " time; de = "am " tag[d] ", " datum " " y ", " zeit " " was[w] }
      if (form == 2) { o = (d + 1 + draw(5)) % 7; en = "from " day[d] " to " day[o] " " what[w]; de = "von " tag[d] " bis " tag[o] " " was[w] }
      if (form == 3) { en = "on " day[d] " " time " " what[w]; de = "am " tag[d] " " zeit " " was[w] }
      if (en in seen) continue
      seen[en]
      print en "\t" de
      ++line
    }
  }'
