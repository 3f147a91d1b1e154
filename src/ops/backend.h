// Runs an op on the program's back end: the plain reference, or this CPU's kernels.
//
//   BRISK_RUN_OP(run, norm_forward, op);      // ref::norm_forward(op) or cpu::norm_forward(op)
#pragma once

#define BRISK_RUN_OP(run, function, arguments)   \
  do {                                           \
    if ((run).backend() == Backend::reference) { \
      ref::function(arguments);                  \
    } else {                                     \
      cpu::function(arguments);                  \
    }                                            \
  } while (false)
