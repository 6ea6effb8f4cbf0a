"""Scattering: against sums written out, on waves and constants, moved and mirrored, and image by image."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from dalenius import learn
from dalenius.errors import InvalidArgument
from dalenius.learn.features.morlet import FREQUENCY, average, wavelet

Array = NDArray[np.float64]


def bell(places: Array, width: float, turn: float, slant: float, frequency: float) -> NDArray[np.complex128]:
    """A wave under a Gaussian at places (…, 2), as the paper writes it."""
    along = places @ np.array([math.cos(turn), math.sin(turn)])
    aside = places @ np.array([-math.sin(turn), math.cos(turn)])
    size = slant / (2 * math.pi * width**2)
    return size * np.exp(-(along**2 + slant**2 * aside**2) / (2 * width**2) + 1j * frequency * along)


def filtered(image: Array, kernel: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """A periodic convolution, by adding up moved copies."""
    found = np.zeros(image.shape, dtype=complex)
    half = len(kernel) // 2
    for i, j in np.ndindex(kernel.shape):
        found += kernel[i, j] * np.roll(image, (i - half, j - half), (0, 1))
    return found


def places(reach: int) -> Array:
    return np.stack(np.meshgrid(*[np.arange(-reach, reach + 1.0)] * 2, indexing="ij"), -1)


def slowly(image: Array, scales: int, angles: int) -> Array:
    """The definition, written out: no Fourier transform."""
    step, slant = 2**scales, 4 / angles
    padded = np.pad(image, step, mode="reflect")
    grid = slice(step, step + len(image), step)

    def moved(values: Array, level: int, scale: int, turn: float) -> Array:
        width = 0.8 * 2 ** (scale - level)
        at = places(math.ceil(6 * width * max(1, 1 / slant)))
        wave = bell(at, width, turn, slant, FREQUENCY / 2 ** (scale - level))
        plain = bell(at, width, turn, slant, 0.0)
        every = 2 ** (scale - level)
        return np.abs(filtered(values, wave - wave.sum() / plain.sum() * plain))[::every, ::every]

    def averaged(values: Array, level: int) -> Array:
        width = 0.8 * 2 ** (scales - level - 1)
        kernel = bell(places(math.ceil(6 * width)), width, 0.0, 1.0, 0.0)
        kernel /= kernel.sum()
        every = slice(grid.start >> level, grid.stop >> level, step >> level)
        return filtered(values, kernel).real[every, every]

    turns = [math.pi * (angles // 2 - 1 - i) / angles for i in range(angles)]
    first, second = [], []
    for one in range(scales):
        for turn in turns:
            once = moved(padded, 0, one, turn)
            first.append(averaged(once, one))
            for two in range(one + 1, scales):
                second += [averaged(moved(once, one, two, other), two) for other in turns]
    return np.stack([averaged(padded, 0), *first, *second])


@pytest.mark.parametrize(("side", "scales", "angles"), [(8, 1, 4), (8, 2, 4), (12, 2, 3), (16, 3, 2)])
def test_it_is_the_definition_written_out(side: int, scales: int, angles: int) -> None:
    image = torch.rand(1, side, side, generator=torch.Generator().manual_seed(side))
    found = learn.Scattering(side, scales=scales, angles=angles)(image)[0]
    assert np.abs(found.numpy() - slowly(image[0].double().numpy(), scales, angles)).max() < 2e-6


def test_sizes_are_those_of_the_paper() -> None:
    assert learn.scattering(torch.zeros(2, 28, 28)).shape == (2, 81, 7, 7)
    assert learn.scattering(torch.zeros(2, 3, 32, 32)).shape == (2, 243, 8, 8)
    assert learn.scattering(torch.zeros(0, 28, 28)).shape == (0, 81, 7, 7)


def test_colors_are_images_of_their_own() -> None:
    images = torch.rand(2, 3, 16, 16)
    found = learn.scattering(images, angles=4).unflatten(1, (3, -1))
    assert torch.equal(found[:, 1], learn.scattering(images[:, 1], angles=4))


def test_a_constant_has_its_average_and_no_waves() -> None:
    found = learn.scattering(torch.full((1, 28, 28), 0.7))
    assert torch.allclose(found[:, 0], torch.tensor(0.7), atol=1e-6)
    assert found[:, 1:].abs().max() < 1e-6


def test_brightness_and_sign_of_contrast() -> None:
    image = torch.rand(1, 28, 28)
    found, other = learn.scattering(image), learn.scattering(0.9 - 0.5 * image)
    assert torch.allclose(other[:, 1:], 0.5 * found[:, 1:], atol=1e-6)
    assert torch.allclose(other[:, 0], 0.9 - 0.5 * found[:, 0], atol=1e-6)


def test_a_wave_is_found_by_the_wavelet_of_its_direction() -> None:
    """Far from edges the absolute value is half the filter's transform at the wave's frequency."""
    turns = math.pi * (3 - torch.arange(8.0)) / 8
    at = torch.arange(64.0)
    along = turns.cos()[:, None, None] * at[:, None] + turns.sin()[:, None, None] * at
    found = learn.scattering(torch.cos(FREQUENCY / 2 * along))[:, 9:17, 8, 8]
    assert found.argmax(1).tolist() == list(range(8))
    at_wave = 1 - math.exp(-((1.6 * FREQUENCY / 2) ** 2))
    assert found.diagonal().tolist() == pytest.approx([at_wave / 2] * 8, rel=0.02)


def test_moving_by_a_step_moves_the_grid() -> None:
    image = torch.zeros(1, 40, 40)
    image[:, 14:22, 15:24] = torch.rand(8, 9)
    found, moved = learn.scattering(image), learn.scattering(image.roll((4, 4), (1, 2)))
    assert torch.allclose(found[..., 1:-2, 1:-2], moved[..., 2:-1, 2:-1], atol=1e-4)


def test_moving_by_a_pixel_changes_less_than_it_does_to_the_image() -> None:
    image = torch.zeros(1, 28, 28)
    image[:, 8:20, 8:20] = torch.rand(12, 12)
    moved = image.roll(1, 2)
    change = (learn.scattering(image) - learn.scattering(moved)).norm() / learn.scattering(image).norm()
    assert change < 0.5 * (image - moved).norm() / image.norm()


def test_mirrored_at_the_diagonal() -> None:
    """Down and across change places, and an angle becomes a right one less itself."""
    image = torch.rand(1, 28, 28)
    found, other = learn.scattering(image)[0], learn.scattering(image.mT)[0].mT
    turned = [(2 - i) % 8 for i in range(8)]
    assert torch.allclose(other[0], found[0], atol=1e-5)
    assert torch.allclose(other[1:17].view(2, 8, 7, 7), found[1:17].view(2, 8, 7, 7)[:, turned], atol=1e-5)
    two, swapped = found[17:].view(8, 8, 7, 7), other[17:].view(8, 8, 7, 7)
    assert torch.allclose(swapped, two[turned][:, turned], atol=1e-5)


def test_filters_make_no_more_of_an_image_than_there_is() -> None:
    """Littlewood and Paley's sum, on real images: at most one, one at nought, and nowhere nearly nothing."""
    total = average(36, 2) ** 2
    for scale in range(2):
        for i in range(8):
            power = wavelet(36, scale, math.pi * i / 8, 0.5) ** 2
            total += (power + power.flip(0, 1).roll((1, 1), (0, 1))) / 2
    assert total.max() <= 1 + 1e-12 and total[0, 0] == pytest.approx(1) and total.min() > 0.1


def test_features_of_an_image_are_its_own_bit_by_bit() -> None:
    images = torch.rand(150, 28, 28)
    found, order = learn.scattering(images), torch.randperm(150)
    assert torch.equal(learn.scattering(images[order]), found[order])
    assert torch.equal(learn.scattering(images[77:78]), found[77:78])


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_no_number_stays_with_its_image(bad: float) -> None:
    images = torch.rand(70, 28, 28)
    spoiled = images.clone()
    spoiled[::2, 3, 3] = bad
    assert torch.equal(learn.scattering(spoiled)[1::2], learn.scattering(images)[1::2])


@pytest.mark.parametrize(
    "images", [torch.zeros(28, 28), torch.zeros(1, 28, 24), torch.zeros(1, 30, 30), [[1]]]
)
def test_other_images_are_refused(images: Any) -> None:
    with pytest.raises(InvalidArgument) as refused:
        learn.scattering(images)
    assert refused.value.remedy


def test_a_transform_is_of_one_side() -> None:
    with pytest.raises(InvalidArgument, match="side 28"):
        learn.Scattering(28)(torch.zeros(1, 32, 32))
    with pytest.raises(InvalidArgument):
        learn.Scattering(4)
