"""Hugging Face's own models, untrained and tiny, where `transformers` is installed; LoRA where `peft` is."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from typing import Any

from torch import Tensor, nn

from .architecture import Architecture
from .data import classification, features, given, integers, logits_of, tagging

INSTALLED = find_spec("transformers") is not None
ADAPTERS = INSTALLED and find_spec("peft") is not None

GPT2 = {
    "vocab_size": 32,
    "n_positions": 8,
    "n_embd": 8,
    "n_layer": 2,
    "n_head": 2,
    "bos_token_id": None,
    "eos_token_id": None,
}
BERT = {
    "vocab_size": 32,
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 8,
    "num_labels": 3,
}
LLAMA = {
    "vocab_size": 32,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 8,
}
T5 = {"vocab_size": 32, "d_model": 8, "d_kv": 4, "d_ff": 16, "num_layers": 2, "num_heads": 2}
DISTILBERT = {
    "vocab_size": 32,
    "dim": 8,
    "hidden_dim": 16,
    "n_layers": 2,
    "n_heads": 2,
    "max_position_embeddings": 8,
    "num_labels": 3,
}
VIT = {
    "image_size": 8,
    "patch_size": 4,
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "num_labels": 3,
}
DROPOUTS = [
    "resid_pdrop",
    "embd_pdrop",
    "attn_pdrop",
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "attention_dropout",
    "dropout",
    "dropout_rate",
    "seq_classif_dropout",
    "classifier_dropout",
    "summary_first_dropout",
]


def configured(kind: str, config: str, options: dict[str, Any]) -> nn.Module:
    """A model of a configuration, in training mode, with every dropout that the configuration has off."""
    # Deprecations inside their code are not ours to mend.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import transformers

        settings = getattr(transformers, config)(**options)
        for name in DROPOUTS:
            if getattr(settings, name, None) is not None:
                setattr(settings, name, 0.0)
        settings.use_cache = False
        model = getattr(transformers, kind)(settings)
    return shaken(model.train())


def shaken(model: nn.Module) -> nn.Module:
    """Biases start at zero and scales at one; here they do not."""
    for parameter in model.parameters():
        if parameter.dim() == 1:
            nn.init.normal_(parameter, mean=float(parameter.detach().mean()), std=0.2)
    return model


class Translation(nn.Module):
    """T5 takes its source and its target by name."""

    def __init__(self) -> None:
        super().__init__()
        self.model = configured("T5ForConditionalGeneration", "T5Config", T5)

    def forward(self, source: Tensor, target: Tensor) -> Any:
        return self.model(input_ids=source, decoder_input_ids=target)


def adapted() -> nn.Module:
    """GPT-2 with peft's LoRA on its attention, B off zero so that A has a gradient."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import peft

        config = peft.LoraConfig(r=2, target_modules=["c_attn"], fan_in_fan_out=True, lora_dropout=0.0)
        model = peft.get_peft_model(configured("GPT2LMHeadModel", "GPT2Config", GPT2), config)
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            nn.init.normal_(parameter, std=0.3)
    return model


def labels(outputs: Any, targets: Tensor) -> Tensor:
    return classification(logits_of(outputs), targets)


def words(outputs: Any, targets: Tensor) -> Tensor:
    return tagging(logits_of(outputs), targets)


TEXT = given(integers(32, 4), integers(32, 4))
LABELED = given(integers(32, 4), integers(3))

MODELS = (
    Architecture("HF GPT-2", lambda: configured("GPT2LMHeadModel", "GPT2Config", GPT2), TEXT, words),
    Architecture(
        "HF BERT", lambda: configured("BertForSequenceClassification", "BertConfig", BERT), LABELED, labels
    ),
    Architecture("HF Llama", lambda: configured("LlamaForCausalLM", "LlamaConfig", LLAMA), TEXT, words),
    Architecture("HF T5", Translation, given(integers(32, 5), integers(32, 4), integers(32, 4)), words),
    Architecture(
        "HF DistilBERT",
        lambda: configured("DistilBertForSequenceClassification", "DistilBertConfig", DISTILBERT),
        LABELED,
        labels,
    ),
    Architecture(
        "HF ViT",
        lambda: configured("ViTForImageClassification", "ViTConfig", VIT),
        given(features(3, 8, 8), integers(3)),
        labels,
    ),
)

ARCHITECTURES = (MODELS if INSTALLED else ()) + (
    (Architecture("peft LoRA", adapted, TEXT, words),) if ADAPTERS else ()
)
