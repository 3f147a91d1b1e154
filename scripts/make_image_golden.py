#!/usr/bin/env python3
"""Writes tests/image/golden/images.json: what Pillow makes of image files and of resizing, and Hugging Face's processors of
images.

    python3 -m venv venv && venv/bin/pip install pillow numpy transformers
    venv/bin/python scripts/make_image_golden.py tests/image/golden/images.json

"files": files of each kind (base64) and their pixels as Pillow converts them to RGB. "resized": pixels of the test's own
images at other sizes. "processed": a preprocessor_config.json, one of these images, and its pixels before they are
normalised. The images are made by a formula (pattern() here, pattern() in tests/image/golden_images.h). Pillow from 13 on
resizes some images along the columns first; here it is made to begin with the rows, as all versions before it do.
"""
import base64
import io
import json
import pathlib
import struct
import sys
import zlib

import numpy
from PIL import Image
from transformers.models.beit.image_processing_pil_beit import BeitImageProcessorPil
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
from transformers.models.deit.image_processing_pil_deit import DeiTImageProcessorPil
from transformers.models.donut.image_processing_pil_donut import DonutImageProcessorPil
from transformers.models.nougat.image_processing_pil_nougat import NougatImageProcessorPil
from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil


resize_at_once = Image.Image.resize


def resize_rows_first(image, size, resample=None, **options):
    if resample == Image.Resampling.NEAREST:
        return resize_at_once(image, size, resample, **options)
    return resize_at_once(resize_at_once(image, (size[0], image.height), resample), size, resample)


Image.Image.resize = resize_rows_first


def pattern(height, width, margin=0):
    """Gradients with noise; as a page, with bright paper around it."""
    y, x, c = numpy.meshgrid(numpy.arange(height), numpy.arange(width), numpy.arange(3), indexing="ij")
    values = (5 * x + 3 * y + 40 * c + (x * x * 37 + y * y * 91 + x * y * 53 + c * 101) % 97) % 256
    inside = (y >= margin) & (y < height - margin) & (x >= margin) & (x < width - margin)
    return numpy.where(inside, values, 250 - (x + y) % 5).astype(numpy.uint8)


def text_of(data):
    return base64.b64encode(bytes(data)).decode()


def png(width, height, depth, color, rows, extra=(), interlaced=0):
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, interlaced)
    return b"".join([b"\x89PNG\r\n\x1a\n", chunk(b"IHDR", header), *(chunk(*each) for each in extra),
                     chunk(b"IDAT", zlib.compress(rows, 9)), chunk(b"IEND", b"")])


def interlaced_png(pixels):
    """Adam7: seven passes over pixels further and further apart, each a small image."""
    height, width, _ = pixels.shape
    rows = b""
    for top, left, down, right in [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]:
        for row in pixels[top::down, left::right]:
            if row.size:
                rows += b"\0" + row.tobytes()
    return png(width, height, 8, 2, rows, interlaced=1)


def saved(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def files():
    image = Image.fromarray(pattern(7, 9))
    alpha = image.copy()
    alpha.putalpha(image.convert("L"))
    grey_alpha = alpha.convert("LA")
    palette = image.quantize(16)
    bits16 = b"".join(b"\0" + struct.pack(">6H", *range(100 + 9000 * y, 100 + 9000 * y + 6 * 1500, 1500)) for y in range(4))
    made = {
        "grey.png": saved(image.convert("L"), "PNG"),
        "grey_1_bit.png": saved(image.convert("1"), "PNG"),
        "grey_2_bits.png": png(5, 2, 2, 0, b"\0\x1b\x40\0\xe4\x80"),
        "grey_4_bits.png": png(3, 2, 4, 0, b"\0\x1f\x70\0\xa2\xe0"),
        "grey_alpha.png": saved(grey_alpha, "PNG"),
        "rgb.png": saved(image, "PNG"),
        "rgb_alpha.png": saved(alpha, "PNG"),
        "rgb_16_bits.png": png(2, 4, 16, 2, bits16),
        "palette.png": saved(palette, "PNG", bits=4),
        "palette_alpha.png": saved(palette, "PNG", transparency=b"\0\x80\xff"),
        "palette_1_bit.png": saved(image.quantize(2), "PNG", bits=1),
        "rgb_transparent.png": saved(image, "PNG", transparency=tuple(int(v) for v in numpy.array(image)[0, 0])),
        "interlaced.png": interlaced_png(pattern(7, 9)),
        "rgb.jpg": saved(image, "JPEG", quality=90, subsampling=0),
        "subsampled.jpg": saved(image, "JPEG", quality=75, subsampling=2),
        "progressive.jpg": saved(image, "JPEG", quality=80, progressive=True),
        "grey.jpg": saved(image.convert("L"), "JPEG"),
        "cmyk.jpg": saved(image.convert("CMYK"), "JPEG", quality=95),
        "lossless.webp": saved(image, "WEBP", lossless=True),
        "alpha.webp": saved(alpha, "WEBP", lossless=True, exact=True),
        "lossy.webp": saved(image, "WEBP", quality=80),
        "rgb.ppm": saved(image, "PPM"),
        "grey.pgm": b"P5 # a comment\n3\n2 100\n\x00\x19\x32\x4b\x64\x01",
        "text.ppm": b"P3\n2 1 # two pixels\n15\n1 2 3 15 0 7\n",
        "text.pgm": b"P2 2 2 255 0 128\n7 255",
        "rgb_16_bits.ppm": b"P6 2 1 1000 " + struct.pack(">6H", 0, 500, 1000, 1, 2, 999),
    }
    listed = []
    for name, data in made.items():
        pixels = numpy.array(Image.open(io.BytesIO(data)).convert("RGB"))
        listed.append({"name": name, "file": text_of(data), "height": pixels.shape[0], "width": pixels.shape[1],
                       "pixels": text_of(pixels.tobytes())})
    return listed


def resized():
    cases = [(37, 53, 12, 16, r) for r in range(6)] + [(5, 7, 12, 9, r) for r in range(6)] + [
        (90, 4, 11, 9, 3), (4, 90, 9, 11, 2), (16, 16, 16, 9, 2), (16, 16, 9, 16, 3), (1, 1, 3, 5, 1), (130, 130, 1, 1, 2),
        (23, 31, 23, 17, 1), (64, 48, 32, 24, 2), (64, 48, 21, 15, 4), (19, 300, 8, 8, 1)]
    listed = []
    for height, width, to_height, to_width, resampling in cases:
        out = Image.fromarray(pattern(height, width)).resize((to_width, to_height), resample=resampling)
        listed.append({"height": height, "width": width, "to_height": to_height, "to_width": to_width,
                       "resample": resampling, "pixels": text_of(out.tobytes())})
    return listed


def processed():
    size = {"height": 16, "width": 12}
    cases = [
        (ViTImageProcessorPil(size=size), (30, 41, 0)),
        (ViTImageProcessorPil(size=size, resample=3), (9, 8, 0)),
        (BeitImageProcessorPil(size={"height": 20, "width": 17}, crop_size=size, do_center_crop=True), (40, 25, 0)),
        (BeitImageProcessorPil(size={"height": 11, "width": 15}, crop_size=size, do_center_crop=True), (40, 25, 0)),
        (DeiTImageProcessorPil(size={"height": 18, "width": 18}, crop_size={"height": 13, "width": 16}), (23, 29, 0)),
        (CLIPImageProcessorPil(size={"shortest_edge": 14}, crop_size={"height": 14, "width": 14}), (33, 50, 0)),
        (CLIPImageProcessorPil(size={"shortest_edge": 12}, crop_size={"height": 15, "width": 9}), (50, 33, 0)),
        (DonutImageProcessorPil(size=size), (40, 33, 0)),
        (DonutImageProcessorPil(size=size, do_align_long_axis=True), (25, 60, 0)),
        (DonutImageProcessorPil(size={"height": 12, "width": 18}, do_align_long_axis=True), (50, 21, 0)),
        (DonutImageProcessorPil(size=size), (6, 5, 0)),
        (DonutImageProcessorPil(size=size, do_thumbnail=True, resample=3), (30, 30, 0)),
        (NougatImageProcessorPil(size=size), (70, 50, 7)),
        (NougatImageProcessorPil(size=size), (50, 45, 3)),
        (NougatImageProcessorPil(size=size, do_align_long_axis=True), (40, 77, 5)),
        (NougatImageProcessorPil(size=size, do_crop_margin=False), (64, 40, 6)),
    ]
    listed = []
    for processor, (height, width, margin) in cases:
        out = processor(Image.fromarray(pattern(height, width, margin)), do_rescale=False, do_normalize=False)
        pixels = numpy.ascontiguousarray(numpy.array(out["pixel_values"][0]).transpose(1, 2, 0))
        assert (pixels == pixels.astype(numpy.uint8)).all()
        listed.append({"config": json.loads(processor.to_json_string()), "height": height, "width": width, "margin": margin,
                       "to_height": pixels.shape[0], "to_width": pixels.shape[1],
                       "pixels": text_of(pixels.astype(numpy.uint8).tobytes())})
    return listed


if __name__ == "__main__":
    made = {"files": files(), "resized": resized(), "processed": processed()}
    path = pathlib.Path(sys.argv[1])
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [f'"{key}": [\n' + ",\n".join(json.dumps(each) for each in value) + "\n]" for key, value in made.items()]
    path.write_text("{" + ",\n".join(lines) + "}\n")
    print(f"{path}: {path.stat().st_size} bytes")
