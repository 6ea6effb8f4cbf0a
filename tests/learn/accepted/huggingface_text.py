"""Language models of Hugging Face, tiny and untrained, with the loss that each of them returns."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..architectures.architecture import Inputs
from ..architectures.data import given, integers
from ..architectures.huggingface import BERT, DISTILBERT, GPT2, INSTALLED, LLAMA, T5, configured
from .loop import Loop, training

WORDS, LENGTH = 32, 5


def texts(n: int, generator: torch.Generator) -> tuple[Tensor, ...]:
    """Return words, attention masks and the words as labels; padding is masked and its labels ignored."""
    words = torch.randint(2, WORDS, (n, LENGTH), generator=generator)
    lengths = torch.randint(1, LENGTH + 1, (n, 1), generator=generator)
    mask = (torch.arange(LENGTH) < lengths).long()
    return words.masked_fill(mask == 0, 0), mask, words.masked_fill(mask == 0, -100)


def labeled(n: int, generator: torch.Generator) -> tuple[Tensor, ...]:
    """Return words, attention masks and one label of each row."""
    words, mask, _ = texts(n, generator)
    return words, mask, torch.randint(3, (n,), generator=generator)


PAIRS: Inputs = given(integers(WORDS, LENGTH), integers(WORDS, 4))


def masked(model: nn.Module, words: Tensor, mask: Tensor, labels: Tensor) -> Tensor:
    loss: Tensor = model(input_ids=words, attention_mask=mask, labels=labels).loss
    return loss


def classified(model: nn.Module, words: Tensor, mask: Tensor, labels: Tensor) -> Tensor:
    """The model's own loss counts the labels of the batch that are not negative."""
    return functional.cross_entropy(model(input_ids=words, attention_mask=mask).logits, labels)


def translated(model: nn.Module, words: Tensor, labels: Tensor) -> Tensor:
    loss: Tensor = model(input_ids=words, labels=labels).loss
    return loss


def unmasked(model: nn.Module, words: Tensor, mask: Tensor, labels: Tensor) -> Tensor:
    """For models without attention."""
    loss: Tensor = model(input_ids=words, labels=labels).loss
    return loss


def from_logits(model: nn.Module, words: Tensor, mask: Tensor, labels: Tensor) -> Tensor:
    """Logits of the model, and a loss of the loop, averaged over the tokens of each row first."""
    logits = model(input_ids=words, attention_mask=mask).logits[:, :-1]
    losses = nn.functional.cross_entropy(logits.transpose(1, 2), labels[:, 1:], reduction="none")
    kept = (labels[:, 1:] != -100).float()
    return ((losses * kept).sum(1) / kept.sum(1).clamp(min=1)).mean()


def model_of(name: str, kind: str, options: dict[str, Any], *, loss: Any = masked, rows: Any = texts) -> Loop:
    """Return the loop of one kind of model, whose configuration has the name before "For" or "LMHead"."""
    config = kind.partition("For")[0].partition("LMHead")[0] + "Config"
    ignored = () if rows is labeled else (len(rows(1, torch.Generator())) - 1,)
    return Loop(
        f"HF {name}",
        lambda: configured(kind, config, options),
        rows,
        training(loss),
        ignored=ignored,
        random=True,
    )


ALBERT = BERT | {"embedding_size": 4, "num_hidden_layers": 1, "classifier_dropout_prob": 0.0}
ELECTRA = BERT | {"embedding_size": 4, "num_hidden_layers": 1}
DEBERTA = BERT | {
    "relative_attention": True,
    "pos_att_type": ["p2c", "c2p"],
    "position_buckets": 4,
    "type_vocab_size": 0,
}
ROBERTA = BERT | {"max_position_embeddings": 12, "pad_token_id": 1}
BART = {
    "vocab_size": WORDS,
    "d_model": 8,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 16,
    "decoder_ffn_dim": 16,
    "max_position_embeddings": 16,
    "decoder_start_token_id": 2,
}
PHI = LLAMA | {"partial_rotary_factor": 0.5}
NEOX = {key: value for key, value in LLAMA.items() if key != "num_key_value_heads"}
OPT = {
    "vocab_size": WORDS,
    "hidden_size": 8,
    "word_embed_proj_dim": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "ffn_dim": 16,
    "max_position_embeddings": 16,
}
BLOOM = {"vocab_size": WORDS, "hidden_size": 8, "n_layer": 1, "n_head": 2}
MAMBA = {"vocab_size": WORDS, "hidden_size": 8, "state_size": 3, "num_hidden_layers": 1, "time_step_rank": 2}
MIXED = LLAMA | {"sliding_window": 4}
SEQUENCES = {"pad_token_id": 0, "decoder_start_token_id": 0}

LOOPS: tuple[Loop, ...] = ()
if INSTALLED:
    LOOPS = (
        model_of("GPT-2", "GPT2LMHeadModel", GPT2),
        model_of("GPT-2, loss of the loop", "GPT2LMHeadModel", GPT2, loss=from_logits),
        model_of("BERT", "BertForSequenceClassification", BERT, rows=labeled),
        model_of("BERT, masked words", "BertForMaskedLM", BERT),
        model_of("BERT, tags", "BertForTokenClassification", BERT | {"num_labels": WORDS}),
        model_of("RoBERTa", "RobertaForMaskedLM", ROBERTA),
        model_of("DistilBERT", "DistilBertForSequenceClassification", DISTILBERT, rows=labeled),
        model_of("ALBERT", "AlbertForSequenceClassification", ALBERT, rows=labeled),
        model_of("ELECTRA", "ElectraForSequenceClassification", ELECTRA, rows=labeled),
        model_of("DeBERTa-v2", "DebertaV2ForSequenceClassification", DEBERTA, rows=labeled, loss=classified),
        model_of("Llama", "LlamaForCausalLM", LLAMA),
        model_of("Mistral", "MistralForCausalLM", MIXED),
        model_of("Qwen2", "Qwen2ForCausalLM", LLAMA),
        model_of("Phi", "PhiForCausalLM", PHI),
        model_of("GPT-NeoX", "GPTNeoXForCausalLM", NEOX),
        model_of("OPT", "OPTForCausalLM", OPT),
        model_of("BLOOM", "BloomForCausalLM", BLOOM),
        model_of("Mamba", "MambaForCausalLM", MAMBA, loss=unmasked),
        model_of("T5", "T5ForConditionalGeneration", T5 | SEQUENCES, loss=translated, rows=PAIRS),
        model_of("BART", "BartForConditionalGeneration", BART, loss=translated, rows=PAIRS),
    )
