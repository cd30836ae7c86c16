"""vLLM serving a tiny model with random weights, made here: nothing is downloaded. Prompts are tokens; answers are greedy."""
import json
import os
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["VLLM_NO_USAGE_STATS"] = "1"
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "vocab_size": 512,
    "max_position_embeddings": 512,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "torch_dtype": "float16",
}


def main():
    from vllm import LLM, SamplingParams

    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
            json.dump(CONFIG, file)
        server = LLM(
            model=folder,
            load_format="dummy",
            skip_tokenizer_init=True,
            enforce_eager=True,
            gpu_memory_utilization=0.5,
            max_model_len=256,
            max_num_seqs=8,
            seed=5,
        )
        sampling = SamplingParams(temperature=0, max_tokens=12, ignore_eos=True, detokenize=False)
        for size in (1, 4, 8):
            prompts = [{"prompt_token_ids": [1] + [(7 * i + 3 * j) % 500 + 3 for j in range(20)]} for i in range(size)]
            for i, answer in enumerate(server.generate(prompts, sampling, use_tqdm=False)):
                print("request", size, i, list(answer.outputs[0].token_ids))


if __name__ == "__main__":
    main()
