#!/usr/bin/env bash
# One epoch of a text (WikiText-2, say) in brisk and in its PyTorch twin: the same tokens, the same recipe, one after the other.
#   bench/peers/wikitext.sh train.txt valid.txt VENV/bin/python [FOLDER]
set -euo pipefail
[ $# -ge 3 ] || { echo "usage: bench/peers/wikitext.sh train.txt valid.txt PYTHON [FOLDER]" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
brisk=${BRISK:-$here/../../build/brisk}
folder=${4:-$(mktemp -d)}
mkdir -p "$folder"
# One line, so that brisk's documents and lines of ids are the same tokens.
tr '\n' ' ' < "$1" > "$folder/train.txt"
tr '\n' ' ' < "$2" > "$folder/valid.txt"
cat > "$folder/job.json" <<'JOB'
{ "model": { "d_model": 256, "num_layers": 2, "vocab_size": 10000 },
  "training": { "optimizer": "adamw", "max_length": 128, "batch_size": 32, "num_epochs": 1, "learning_rate": 0.001 },
  "data": { "document": "file" } }
JOB
for precision in ${PRECISIONS:-auto fp32}; do
  rm -rf "$folder/run-$precision"
  "$brisk" train "$folder/job.json" --data "$folder/train.txt" --set "data.validation=$folder/valid.txt" --set training.precision=$precision \
    --output "$folder/run-$precision" 2> "$folder/brisk-$precision.log"
  echo "brisk $precision:"
  grep -oE '"(validation_loss|validation_perplexity|run_tokens_per_second|wall_seconds|tokens|utilisation)": ?[0-9.e+-]+' \
    "$folder/run-$precision/summary.json" | tr '\n' ' '
  echo
  run="$folder/run-$precision"
done
for part in train valid; do
  "$brisk" tokenizer encode --tokenizer "$run/tokenizer.json" < "$folder/$part.txt" > "$folder/$part.ids"
done
vocabulary=$(grep -oE '"vocab_size": ?[0-9]+' "$run/job.json" | grep -oE '[0-9]+')
echo "PyTorch:"
"$3" "$here/lm_quality_torch.py" --train "$folder/train.ids" --validation "$folder/valid.ids" --vocabulary "$vocabulary"
