#include "doctor/judge/finding.h"

namespace brisk {

std::string_view sameness_text(Sameness sameness) {
  switch (sameness) {
    case Sameness::same_bits: return "same bits";
    case Sameness::same_maths: return "same maths within rounding";
    case Sameness::changes_maths: return "changes the maths";
  }
  return "";
}

std::string_view sameness_name(Sameness sameness) {
  switch (sameness) {
    case Sameness::same_bits: return "same bits";
    case Sameness::same_maths: return "same maths";
    case Sameness::changes_maths: return "changes maths";
  }
  return "";
}

}  // namespace brisk
