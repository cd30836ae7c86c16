#!/bin/sh
# A vLLM server beside a training of PyTorch that together want more than there is: each says what it says alone. On a
# real GPU only; a part of tools/gpu-check.
export BOX="--gpus 1 --memory 8GiB"
export LIMIT=900
. "$(dirname "$0")/../system/lib.sh"
[ -n "${SLUICE_TEST_REAL-}" ] && [ -z "${SLUICE_SOFTGPU-}" ] || skip "needs NVIDIA's driver, which its libraries authenticate"
here=$(cd "$(dirname "$0")" && pwd)
PYTHON=${PYTHON:-python3}
for module in torch vllm; do
	"$PYTHON" -c "import $module" 2>/dev/null || skip "$PYTHON has no $module"
done
export TARGET=cuda PYTHONDONTWRITEBYTECODE=1
# serve OUT WORD..., train OUT WORD...: behind the words.
serve() {
	serve_out=$T/$1
	shift
	"$@" "$PYTHON" "$here/vllm-serve.py" >"$serve_out" 2>"$serve_out.err"
}
train() {
	train_out=$T/$1
	shift
	"$@" "$PYTHON" "$here/../frameworks/torch_mlp.py" --mib 3072 --steps 2000 >"$train_out" 2>"$train_out.err"
}
config 'host_memory: 16GiB'
daemon_start
# Alone as workloads, too: what vLLM takes depends on the memory that it sees.
serve serve.alone $RUN --name serve --request 4GiB --limit 6GiB --
check "the server alone: status" $? = 0
train train.alone $RUN --name train --request 1GiB --limit 4GiB --
check "the training alone: status" $? = 0
train train.beside $RUN --name train --request 1GiB --limit 4GiB -- &
training=$!
serve serve.beside $RUN --name serve --request 4GiB --limit 6GiB --
check "the server beside the training: status" $? = 0
wait $training
check "the training beside the server: status" $? = 0
for name in serve train; do
	check "$name: lines that differ" "$(diff "$T/$name.alone" "$T/$name.beside" | grep -c '^[<>]')" = 0
	check "$name: lines" "$(grep -c . "$T/$name.alone")" -ge 13
done
check_books_empty 30
finish
