// A model, as the engine sees it: an ordinary function that records ops on a tape. Decoder, Encoder and EncoderDecoder
// stand behind it; an architecture is one file, and its line in job/architectures.def.
//
//   std::unique_ptr<Model> model = make_model(config, store);   // declares the parameters
//   LossValues loss = model->loss(tape, {});                    // records one training or evaluation run
//   if (const CausalModel* causal = model->causal()) ...        // it can continue texts
#pragma once

#include <cstdint>

#include "ops/tape/tape_ops.h"
#include "tensor/tape.h"

namespace brisk {

class CausalModel;
class ConditionalModel;

// What an image encoder made: rows of a row set.
struct EncodedImages {
  Value rows;
  int set = 0;
};

class Model {
 public:
  virtual ~Model() = default;

  virtual LossValues loss(Tape& tape, const LossOptions& options) const = 0;

  // Of a classifier: how many classes there are, and their logits for the rows of set 1, [rows, C], read back.
  virtual int64_t classes() const { return 0; }
  virtual Value class_logits(Tape& /*tape*/) const { return {}; }

  // Of a model that reads images: its encoders, each of which can be recorded alone, so that what it makes is computed
  // beforehand where it is not trained.
  virtual int64_t image_encoders() const { return 0; }
  virtual EncodedImages record_image_encoder(Tape& /*tape*/, int64_t /*encoder*/) const { return {}; }

  // The model as one that continues texts, or that reads a source and writes a text; nullptr where it is none.
  virtual const CausalModel* causal() const { return nullptr; }
  virtual const ConditionalModel* conditional() const { return nullptr; }
};

// What a model keeps in a KeyValueCache: one entry for each self_attention() that next_token_logits() records.
struct CacheShape {
  int64_t layers = 0;
  int64_t width = 0;  // of a layer's keys, and of its values
};

// A model that continues texts, one token at a time, with a key/value cache: what generation needs to know of it.
class CausalModel : public Model {
 public:
  const CausalModel* causal() const final { return this; }

  virtual Value next_token_logits(Tape& tape) const = 0;  // [S, V]
  virtual int64_t vocab_size() const = 0;
  virtual int64_t max_length() const = 0;  // the longest text it can read
  virtual CacheShape cache_shape() const = 0;
  // Do a text's rows see the rows after them? Then what was computed of the text so far changes with every token: there is
  // no cache, and the whole text is computed for each.
  virtual bool sees_later_tokens() const { return false; }
};

// A model that reads a source (a text, an image) and writes a text. Of a micro-batch for loss(), row set 0 is the sources
// and row set 1 the targets: what the decoder reads, beginning with its start token, and what it is to say. A model may
// read more of a source in further row sets.
//
// Decoding takes two programs (infer/forward/decoding_cache.h): one reads the sources, once, and one makes the next token of
// every text so far, which with beam search are several of one source.
class ConditionalModel : public Model {
 public:
  const ConditionalModel* conditional() const final { return this; }

  // What cross-attention reads of the sources: keys and values of all layers side by side, [N, memory_width()], of the
  // tape's activation type, read back. The micro-batch is as for loss(), but has no row of set 1, or no set but 0.
  virtual Value encode(Tape& tape) const = 0;
  virtual int memory_set() const { return 0; }  // the row set whose rows encode() gives
  virtual int64_t max_memory_rows() const = 0;  // of one source
  virtual int64_t memory_width() const = 0;
  // Row set 0 is target rows: what comes after the last of each sequence, [S, target_vocab_size()], read back. The rows
  // before them are in the cache, and what encode() made of their sources in its memory.
  virtual Value next_token_logits(Tape& tape) const = 0;
  virtual CacheShape cache_shape() const = 0;
  // All rows of set 1 of a micro-batch as loss() reads it, [N, target_vocab_size()], read back: for tests and imports.
  virtual Value logits(Tape& tape) const = 0;

  virtual int64_t target_vocab_size() const = 0;
  virtual int64_t max_target_length() const = 0;
  virtual int64_t first_token() const { return -1; }  // that the decoder reads before a target; -1: the tokenizer says
};

}  // namespace brisk
