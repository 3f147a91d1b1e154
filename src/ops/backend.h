// Runs an op on the program's back end: the plain reference, or this CPU's kernels.
#pragma once

#define BRISK_RUN_OP(run, function, arguments)   \
  do {                                           \
    if ((run).backend() == Backend::reference) { \
      ref::function(arguments);                  \
    } else {                                     \
      cpu::function(arguments);                  \
    }                                            \
  } while (false)
