#include <gtest/gtest.h>

#include "doctor/judge/expect_finding.h"
#include "doctor/judge/healthy_readings.h"

namespace brisk {
namespace {

using test::expect_fix;
using test::finds;
using test::first_finding;
using test::healthy_readings;
using test::Pairs;

TEST(NotLearning, GoesBeforeEverything) {
  Readings readings = healthy_readings();
  readings.machine.product_gflops["bf16"] = 300;
  readings.vital_signs.tensors_with_gradient = 50;
  readings.vital_signs.without_gradient = {"layers.3.up.weight", "layers.3.up.bias"};
  const Finding finding = first_finding(readings, "not_learning", 1);
  EXPECT_EQ(finding.cause, "2 tensors that should be trained get no gradient.");
  EXPECT_NE(finding.evidence[0].note.find("layers.3.up.weight"), std::string::npos);
}

TEST(NotLearning, IsEachOfItsSigns) {
  for (const auto& change : std::vector<void (*)(VitalSigns&)>{[](VitalSigns& signs) { signs.loss_finite = false; },
                                                               [](VitalSigns& signs) { signs.loss_falling = false; },
                                                               [](VitalSigns& signs) { signs.tensors_changed = 51; }}) {
    Readings readings = healthy_readings();
    change(readings.vital_signs);
    first_finding(readings, "not_learning", 1);
    readings.vital_signs.measured = false;
    EXPECT_FALSE(finds(readings, "not_learning"));
  }
}

TEST(LossStart, IsFarFromEqualChances) {
  Readings readings = healthy_readings();
  readings.vital_signs.first_loss = 15;
  first_finding(readings, "loss_start", 1);
  readings.vital_signs.first_loss = 9.9;
  EXPECT_FALSE(finds(readings, "loss_start"));
  readings.vital_signs.first_loss = 2;
  readings.vital_signs.expected_first_loss = -1;
  EXPECT_FALSE(finds(readings, "loss_start")) << "a trained model";
}

TEST(Overfitting, RisesWhileTheTrainingLossFalls) {
  Readings readings = healthy_readings();
  for (size_t i = 6; i < 10; ++i) readings.history.validation[i].second += 0.3 * static_cast<double>(i - 5);
  expect_fix(first_finding(readings, "overfitting", 1), "training.early_stopping_patience", "3");
  readings.history.validation[9].second = readings.history.validation[8].second - 0.1;
  EXPECT_FALSE(finds(readings, "overfitting")) << "it falls again";
}

TEST(Plateau, HasNotMovedForAThirdOfTheRun) {
  Readings readings = healthy_readings();
  for (size_t i = 6; i < 10; ++i) readings.history.validation[i].second = readings.history.validation[5].second;
  first_finding(readings, "plateau", 1);
  readings.history.validation[9].second *= 0.99;
  EXPECT_FALSE(finds(readings, "plateau"));
}

TEST(LearningRate, IsFarFromTheBestOfASweep) {
  Readings readings = healthy_readings();
  readings.rate_curve = {{0.3, 0, 4.2}, {1, 0, 4.0}, {3, 0, 3.5}, {10, 0, -1}};
  const Finding finding = first_finding(readings, "learning_rate", 1);
  expect_fix(finding, "training.learning_rate", "0.012");
  EXPECT_EQ(finding.fix->also, (Pairs{{"training.muon_learning_rate", "0.03"}}));
  readings.rate_curve[2].loss = 3.95;
  EXPECT_FALSE(finds(readings, "learning_rate"));
  readings.rate_curve = {{1, 0, 4.0}, {10, 0, -1}};
  EXPECT_FALSE(finds(readings, "learning_rate")) << "what diverged is not lower";
}

}  // namespace
}  // namespace brisk
