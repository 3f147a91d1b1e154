// What a job does between its steps, and how often in an epoch.
//
//   CourseReadings course = course_of(job, facts, seconds_per_step);
//   course.evaluations_per_epoch;
#pragma once

#include <string>

#include "doctor/measure/measured_run.h"
#include "doctor/readings/readings.h"

namespace brisk {

// The counts alone: what each takes is measured.
CourseReadings course_of(const Job& job, const ReadyFacts& facts, double seconds_per_step);

// Whether a key decides this and nothing of the steps themselves.
bool is_of_course(const std::string& key);

}  // namespace brisk
