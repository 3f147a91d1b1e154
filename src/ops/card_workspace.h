// What ops take of a card's memory beside a program's arena: a workspace that all of them share in turn, and the
// products' own. Known from the tape, so that whether a job fits is known before anything is allocated; and reserved
// before the first step, so that nothing grows later.
//
//   const int64_t bytes = card_workspace_bytes(tape);        // as much as the greediest op of it wants
//   BRISK_RUN_ON_CARD(reserve_workspace, bytes);
#pragma once

#include <cstdint>

#include "tensor/tape.h"

namespace brisk {

// Of cuBLASLt, for products of which several blocks share a result (split-K, stream-K): two of 64 MiB, since two
// products may run side by side. NVIDIA asks for 32 MiB each on Hopper; with 64 more algorithms are candidates.
constexpr int64_t kProductWorkspaceBytes = int64_t{128} << 20;

// Of the shared workspace. At least what ops ask for at the tape's capacity; a little more where that depends on the
// card's number of multiprocessors.
int64_t card_workspace_bytes(const Tape& tape);
// Of another beside it, where linear layers multiply eight bits (ProductFormat::fp8): their operands.
int64_t card_operand_bytes(const Tape& tape);

namespace cuda {
void reserve_workspace(int64_t bytes);  // outside of a capture
void reserve_operand_workspace(int64_t bytes);
int64_t workspace_size();  // bytes of the shared one, so far
// Gives all of them back, the products' too; the next op that wants one makes it anew. No graph that was recorded with
// them may run any more: only between engines.
void release_workspaces();
void* product_workspace();  // half of kProductWorkspaceBytes: products that run side by side have one each
}  // namespace cuda

}  // namespace brisk
