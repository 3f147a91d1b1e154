#!/usr/bin/env bash
# Line coverage of the readers of files that others wrote, by their unit tests and the fuzzers' committed inputs.
#   scripts/coverage.sh [LEAST]     a table; exit status 1 where a file is at or below LEAST percent (90 unless said)
set -euo pipefail
cd "$(dirname "$0")/.."
least=${1:-90}
readers=(
  base/{job,job_defaults,job_options,options,options_json,stop}
  text/{tokenizer,tokenizer_json,gpt2_files,llama2c_tokenizer,sentencepiece_model,scored_pieces,merge_reader}
  text/{json_fields,special_roles,normalizer,pre_tokenizer,post_processor,token_decoder,replace,regex_parse,regex_compile,regex}
  text/{added_tokens,bpe_json,wordpiece_json}
  data/{json_lines,delimited,input_table,input_table_columns}
  hub/{safetensors,gguf,gguf_model,gguf_tokenizer,torch_file,tensor_pickle,zip_records,weight_files}
)
fuzzers=($(cd tests/fuzz && ls fuzz_*.cpp | sed 's/\.cpp//'))
launcher=()
command -v ccache >/dev/null && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
cmake -S . -B build-coverage -G Ninja -DBRISK_TESTS=ON -DBRISK_UNITY=OFF -DBRISK_CUDA=OFF -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS='-O0 --coverage' \
  "${launcher[@]}" >/dev/null
cmake --build build-coverage --target test_base test_text test_data test_hub "${fuzzers[@]}"

find build-coverage -name '*.gcda' -delete
for module in base text data hub; do (cd build-coverage && tests/test_$module --gtest_brief=1); done
for fuzzer in "${fuzzers[@]}"; do
  seeds=tests/fuzz/corpus/${fuzzer#fuzz_}
  [ -d "$seeds" ] || seeds=tests/golden/torch  # the files of the reader's own tests
  build-coverage/tests/fuzz/$fuzzer "$seeds"
done

status=0
printf '%-36s %8s %10s\n' file lines covered
for reader in "${readers[@]}"; do
  module=${reader%/*}
  # gcov counts every file that the object was compiled from; the source itself is one of them.
  read -r covered lines < <(gcov --no-output build-coverage/CMakeFiles/brisk_$module.dir/src/$reader.cpp.gcda 2>/dev/null |
    awk -v file="src/$reader.cpp'" '/^File/ { found = index($0, file) } /^Lines executed/ && found {
      split($0, part, /[:%]| of /); print part[2], part[4]; exit }')
  printf '%-36s %8s %8s %%\n' "src/$reader.cpp" "$lines" "$covered"
  awk -v covered="$covered" -v least="$least" 'BEGIN { exit !(covered > least) }' || status=1
done
[ $status = 0 ] || echo "a file is not above $least %: add tests, or see what is missing with gcov" >&2
exit $status
