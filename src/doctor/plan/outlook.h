// From what a job is and what its parts take to the time of an epoch and of the run.
//
//   Outlook outlook = outlook_of(job, size, &times, machine.memory_bytes);
//   Outlook two = on_ranks(network, outlook, size, part, times_of_part);
#pragma once

#include "doctor/planning.h"

namespace brisk {

// `times`: none where nothing could be timed. `memory_available`: of the machine.
Outlook outlook_of(const Job& job, const JobSize& size, const StepTimes* times, int64_t memory_available);

// The same steps divided among equal ranks, each with `part` of the sequences (doctor/plan/rank_model.h); `whole` is the
// outlook of one. A network without bandwidth is not known: what it adds is not in the times.
Outlook on_ranks(const RankNetwork& network, const Outlook& whole, const JobSize& size, const JobSize& part,
                 const StepTimes& times_of_part);

// As if there were so many times the data, of the same kind.
JobSize with_more_data(const Job& job, JobSize size, double factor);

}  // namespace brisk
