"""Settings of torch that code can change and that later code sees, such as the default type of floats."""

from __future__ import annotations

from collections.abc import Hashable

import torch

_DEVICES = "cpu", "cuda"


def torch_settings() -> tuple[Hashable, ...]:
    """Return the settings of torch that decide how functions compute, to compare them later.

    Whether denormal numbers are flushed is not among them: torch does not tell.
    """
    backends = torch.backends
    return (
        torch.get_default_dtype(),
        torch.get_default_device(),
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.is_anomaly_enabled(),
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        torch.get_float32_matmul_precision(),
        torch.get_num_threads(),
        *(torch.is_autocast_enabled(device) for device in _DEVICES),
        *(torch.get_autocast_dtype(device) for device in _DEVICES),
        torch.is_autocast_cache_enabled(),
        backends.mkldnn.enabled,
        backends.cudnn.enabled,
        backends.cudnn.benchmark,
        backends.cudnn.deterministic,
        backends.cuda.flash_sdp_enabled(),
        backends.cuda.mem_efficient_sdp_enabled(),
        backends.cuda.math_sdp_enabled(),
        backends.cuda.cudnn_sdp_enabled(),
    )
