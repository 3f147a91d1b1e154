// How a file of tokens is made of pieces of text: on all cores, written in order, with a journal from which the next process
// goes on where this one is killed.
//
//   build_token_file(reader, {writer, progress, bytes, journal_seconds},
//                    [&](TextPiece& piece) { return tokenise(piece); },                      // on any thread
//                    [&](const TextPiece& piece, const Tokens& made) { write(piece, made); },  // in order, on this one
//                    [&] { return place_text(); });                                          // where it stands, as text
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "data/read/piece_waves.h"
#include "data/token_store/token_cache_file.h"

namespace brisk {

struct TokenFileBuild {
  TokenFileWriter& writer;
  const TokenizeProgress& progress;
  int64_t disk_bytes;      // of all the files, for the progress
  double journal_seconds;  // of work are lost at most
};

template <typename Reader, typename Work, typename Take, typename Place>
void build_token_file(Reader& reader, const TokenFileBuild& build, const Work& work, const Take& take,
                      const Place& place) {
  // The first journal comes as soon as there is something to lose: a wave of pieces.
  constexpr int64_t kFirstJournalBytes = int64_t{4} << 20;
  int64_t saved_at = kSystemClock.nanoseconds(), bytes = 0;
  bool saved = false;
  run_waves(reader, work, [&](const TextPiece& piece, const auto& made) {
    take(piece, made);
    if (build.progress) build.progress(piece.disk_bytes, build.disk_bytes);
    bytes += std::ssize(piece.text);
    const bool due =
        (!saved && bytes >= kFirstJournalBytes) || kSystemClock.seconds_since(saved_at) >= build.journal_seconds;
    if (piece.closes && due) {
      in_cache([&] { build.writer.save_progress(place()); });
      saved_at = kSystemClock.nanoseconds();
      saved = true;
    }
    return true;
  });
}

}  // namespace brisk
