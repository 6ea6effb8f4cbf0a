"""Models of images and of sound of Hugging Face, tiny and untrained, with the loss that each returns."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from ..architectures.data import features, given, integers
from ..architectures.huggingface import INSTALLED, VIT, configured
from .loop import Loop, training


def seen(model: nn.Module, pixels: Tensor, labels: Tensor) -> Tensor:
    loss: Tensor = model(pixel_values=pixels, labels=labels).loss
    return loss


def heard(model: nn.Module, sound: Tensor, labels: Tensor) -> Tensor:
    loss: Tensor = model(input_values=sound, labels=labels).loss
    return loss


def transcribed(model: nn.Module, spectrum: Tensor, labels: Tensor) -> Tensor:
    loss: Tensor = model(input_features=spectrum, labels=labels).loss
    return loss


def described(model: nn.Module, pixels: Tensor, labels: Tensor) -> Tensor:
    """An encoder without a loss of its own: its pooled output as logits."""
    return nn.functional.cross_entropy(model(pixel_values=pixels).pooler_output, labels)


IMAGES, SOUNDS = given(features(3, 8, 8), integers(3)), given(features(40), integers(3))
LARGER = given(features(3, 16, 16), integers(3))
SPECTRA = given(features(4, 8), integers(32, 4))

SWIN = {
    "image_size": 16,
    "patch_size": 4,
    "embed_dim": 4,
    "depths": [1, 1],
    "num_heads": [1, 2],
    "window_size": 2,
    "drop_path_rate": 0.0,
    "num_labels": 3,
}
CONVNEXT = {"num_stages": 2, "hidden_sizes": [4, 6], "depths": [1, 1], "patch_size": 2, "num_labels": 3}
CLIP = {key: value for key, value in VIT.items() if key != "num_labels"}
WAVES = {
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "conv_dim": (4, 4),
    "conv_stride": (2, 2),
    "conv_kernel": (4, 2),
    "num_conv_pos_embeddings": 4,
    "num_conv_pos_embedding_groups": 2,
    "feat_extract_norm": "layer",
    "apply_spec_augment": False,
    "layerdrop": 0.0,
    "classifier_proj_size": 6,
    "num_labels": 3,
}
WHISPER = {
    "vocab_size": 32,
    "num_mel_bins": 4,
    "d_model": 8,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 16,
    "decoder_ffn_dim": 16,
    "max_source_positions": 4,
    "max_target_positions": 8,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
}


def loop_of(
    name: str, kind: str, config: str, options: dict[str, Any], *, loss: Any = seen, rows: Any = IMAGES
) -> Loop:
    ignored = (1,) if rows is SPECTRA else ()
    return Loop(
        f"HF {name}",
        lambda: configured(kind, config, options),
        rows,
        training(loss),
        ignored=ignored,
        random=True,
    )


LOOPS: tuple[Loop, ...] = ()
if INSTALLED:
    LOOPS = (
        loop_of("ViT", "ViTForImageClassification", "ViTConfig", VIT),
        loop_of("Swin", "SwinForImageClassification", "SwinConfig", SWIN, rows=LARGER),
        loop_of("ConvNext", "ConvNextForImageClassification", "ConvNextConfig", CONVNEXT, rows=LARGER),
        loop_of("CLIP", "CLIPVisionModel", "CLIPVisionConfig", CLIP, loss=described),
        loop_of(
            "Wav2Vec2",
            "Wav2Vec2ForSequenceClassification",
            "Wav2Vec2Config",
            WAVES,
            loss=heard,
            rows=SOUNDS,
        ),
        loop_of("Hubert", "HubertForSequenceClassification", "HubertConfig", WAVES, loss=heard, rows=SOUNDS),
        loop_of(
            "Whisper",
            "WhisperForConditionalGeneration",
            "WhisperConfig",
            WHISPER,
            loss=transcribed,
            rows=SPECTRA,
        ),
    )
