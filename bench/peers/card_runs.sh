#!/usr/bin/env bash
# Real runs on a card beside PyTorch, the same tokens and recipe: GPT-2's shape (124M) on a text, BERT-base from scratch on reviews.
#   bench/peers/card_runs.sh train.txt valid.txt reviews.tsv vocab.txt [PYTHON] [FOLDER]
# The texts are WikiText-2's, say; reviews.tsv has the columns label and text, and every fifth row is held out; vocab.txt is BERT's.
# Each run prints one line: the loss (or accuracy) on what was held out, seconds of training, tokens or rows a second.
set -euo pipefail
[ $# -ge 4 ] || { echo "usage: bench/peers/card_runs.sh train.txt valid.txt reviews.tsv vocab.txt [PYTHON] [FOLDER]" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
brisk=${BRISK:-$here/../../build-gpu/brisk} python=${5:-python3} folder=${6:-$(mktemp -d)}
mkdir -p "$folder"

show() {  # of a run's summary
  echo -n "brisk $1: "
  grep -oE "\"($2|run_tokens_per_second|run_rows_per_second|wall_seconds|first_step_seconds|peak_memory_bytes)\": ?[0-9.e+-]+" \
    "$folder/$1/summary.json" | awk '!seen[$0]++' | tr '\n' ' '
  echo
}

# One line, so that brisk's documents and lines of ids are the same tokens.
tr '\n' ' ' < "$1" > "$folder/train.txt"
tr '\n' ' ' < "$2" > "$folder/valid.txt"
cat > "$folder/gpt2.json" <<'JOB'
{ "model": { "d_model": 768, "num_layers": 12, "num_heads": 12, "vocab_size": 32000 },
  "training": { "optimizer": "adamw", "max_length": 1024, "batch_size": 8, "num_epochs": 2, "learning_rate": 6e-4, "precision": "bf16",
                "load_best_model_at_end": false },
  "data": { "document": "file" }, "device": "cuda" }
JOB
rm -rf "$folder/gpt2"
"$brisk" train "$folder/gpt2.json" --data "$folder/train.txt" --set "data.validation=$folder/valid.txt" --output "$folder/gpt2" 2> "$folder/gpt2.log"
show gpt2 validation_loss
for part in train valid; do
  "$brisk" tokenizer encode --tokenizer "$folder/gpt2/tokenizer.json" < "$folder/$part.txt" > "$folder/$part.ids"
done
vocabulary=$(grep -oE '"vocab_size": ?[0-9]+' "$folder/gpt2/job.json" | grep -oE '[0-9]+')
echo -n "PyTorch: "
"$python" "$here/lm_quality_torch.py" --train "$folder/train.ids" --validation "$folder/valid.ids" --vocabulary "$vocabulary" --width 768 \
  --layers 12 --length 1024 --batch 8 --rate 6e-4 --precision bf16 --device cuda --fraction 2

awk 'NR == 1 || NR % 5' "$3" > "$folder/reviews.tsv"
awk 'NR == 1 || NR % 5 == 0' "$3" > "$folder/held.tsv"
cat > "$folder/bert.json" <<'JOB'
{ "task": "classify", "model": { "type": "bert", "d_model": 768, "num_layers": 12, "num_heads": 12 },
  "training": { "max_length": 256, "batch_size": 32, "num_epochs": 1, "learning_rate": 5e-5, "precision": "bf16", "lr_scheduler": "linear",
                "warmup_ratio": 0.1 },
  "device": "cuda" }
JOB
rm -rf "$folder/bert"
"$brisk" train "$folder/bert.json" --data "$folder/reviews.tsv" --set "data.validation=$folder/held.tsv" --set "data.tokenizer=$4" \
  --output "$folder/bert" 2> "$folder/bert.log"
show bert 'validation_loss|validation_accuracy'
echo -n "PyTorch: "
"$python" "$here/classify_torch.py" --model bert --data "$folder/reviews.tsv" --validation "$folder/held.tsv" --vocabulary "$4" \
  --max-length 256 --batch 32 --rate 5e-5 --precision bf16 --device cuda --json
