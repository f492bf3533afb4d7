"""Pictures with a palette: a third of the bytes of what a browser writes."""

import base64
import struct
import zlib
from typing import Any

import numpy as np
from playwright.sync_api import Page

COLOURS_MAX = 256
_PIXELS = """async (text) => {
  const image = new Image();
  image.src = "data:image/png;base64," + text;
  await image.decode();
  const paper = new OffscreenCanvas(image.width, image.height).getContext("2d");
  paper.drawImage(image, 0, 0);
  const bytes = paper.getImageData(0, 0, image.width, image.height).data;
  let found = "";
  for (let at = 0; at < bytes.length; at += 32768) {
    found += String.fromCharCode(...bytes.subarray(at, at + 32768));
  }
  return [image.width, image.height, btoa(found)];
}"""


def smaller(picture: bytes, blank: Page) -> bytes:
    """Return a PNG of 256 colours; every other pixel takes the nearest of them.

    Args:
        picture: as the browser wrote it.
        blank: an empty tab, which decodes it.
    """
    width, height, pixels = blank.evaluate(_PIXELS, base64.b64encode(picture).decode())
    colours = np.frombuffer(base64.b64decode(pixels), np.uint8).reshape(-1, 4)[:, :3]
    found, where, counts = np.unique(colours, axis=0, return_inverse=True, return_counts=True)
    palette, nearest = _palette(found.astype(np.int64), counts)
    rows = nearest[where.reshape(-1)].reshape(height, width)
    return b"".join(
        [
            b"\x89PNG\r\n\x1a\n",
            _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
            _chunk(b"PLTE", palette.tobytes()),
            _chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row.tobytes() for row in rows), 9)),
            _chunk(b"IEND", b""),
        ]
    )


def _palette(colours: "np.ndarray[Any, Any]", counts: "np.ndarray[Any, Any]") -> "tuple[Any, Any]":
    """Return the colours to keep, and for each colour which of them is the nearest.

    One after the other is taken that does most harm while it is missing: rare ones too, if nothing is near.
    """
    chosen = [int(counts.argmax())]
    distance = ((colours - colours[chosen[0]]) ** 2).sum(axis=1)
    nearest = np.zeros(len(colours), np.uint8)
    while len(chosen) < COLOURS_MAX and distance.any():
        chosen.append(int((distance * counts).argmax()))
        new = ((colours - colours[chosen[-1]]) ** 2).sum(axis=1)
        nearest[new < distance] = len(chosen) - 1
        distance = np.minimum(distance, new)
    return colours[chosen].astype(np.uint8), nearest


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
