"""Fine-tune a language model with LoRA, so that hardly anything can be learned about any one of its users.

    pip install 'dalenius[finetune,learn]'
    python examples/finetune.py                    a tiny untrained model, made-up texts, no download
    python examples/finetune.py path/to/weights    a model of the GPT-2 kind and its tokenizer, from a folder

The adapter and its receipt end up in adapter.safetensors, the charge in users.ledger.
"""

import sys

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer, GPT2Config

import dalenius as dp

SHAPE = {"vocab_size": 256, "n_positions": 32, "n_embd": 32, "n_layer": 2, "n_head": 2}
TINY = GPT2Config(**SHAPE, bos_token_id=0, eos_token_id=0)
USERS, LENGTH = torch.arange(600) % 100, 32
TEXTS = [f"User {user} asks for number {7 * i % 10}." for i, user in enumerate(USERS.tolist())]


def tokens(folder: str | None) -> torch.Tensor:
    """A row of tokens for each text; bytes, where there is no tokenizer."""
    if folder is None:
        return torch.tensor([list(text.encode()[:LENGTH].ljust(LENGTH)) for text in TEXTS])
    tokenizer = AutoTokenizer.from_pretrained(folder, pad_token="<|endoftext|>")
    padded = {"padding": "max_length", "truncation": True, "max_length": LENGTH, "return_tensors": "pt"}
    return tokenizer(TEXTS, **padded).input_ids


def main(folder: str | None = None) -> dp.learn.Private:
    """Adapt, train, export; a user's texts count as one."""
    model = AutoModelForCausalLM.from_pretrained(folder) if folder else AutoModelForCausalLM.from_config(TINY)
    model = get_peft_model(model, LoraConfig(r=4, target_modules=["c_attn"], fan_in_fan_out=True))
    optimizer = torch.optim.Adam((one for one in model.parameters() if one.requires_grad), lr=3e-3)
    ledger, budget = dp.Ledger("users.ledger"), dp.Budget(epsilon=8, delta=1e-4)
    users = ledger.open("users", unit=dp.Unit("user", column="user"), budget=budget)
    sizes = {"batch_size": 20, "epochs": 4, "public_size": 100, "units": USERS, "rows_per_unit": 4}
    promise = {"clip": 1, "epsilon": 7, "delta": 1e-5, "account": users}
    private = dp.learn.Private(model, optimizer, tokens(folder), **promise, **sizes)
    for (batch,) in private.batches():
        private.zero_grad()
        logits = private.model(input_ids=batch).logits
        torch.nn.functional.cross_entropy(logits[:, :-1].transpose(1, 2), batch[:, 1:]).backward()
        private.step()
    private.export("adapter.safetensors", trained=True)
    return private


if __name__ == "__main__":
    print(main(*sys.argv[1:]).receipt)
