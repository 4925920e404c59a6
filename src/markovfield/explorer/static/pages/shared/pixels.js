// Pictures that the browser opens: no format is parsed on the server, which is sent plain pixels.
import { h } from "../../dom.js";
import { toBase64 } from "./controls.js";

// Pixels of a file or of bytes with a media type, made small enough for an answer within a moment.
export async function pixelsOf(blob, limits) {
  const address = URL.createObjectURL(blob);
  const image = new Image();
  try {
    image.src = address;
    await image.decode();
  } catch {
    throw new Error("the browser cannot open this picture");
  } finally {
    URL.revokeObjectURL(address);
  }
  const [width, height] = [image.naturalWidth || 100, image.naturalHeight || 100];
  const scale = Math.min(1, limits.side / Math.max(width, height), Math.sqrt(limits.pixels / (width * height)));
  const columns = Math.max(2, Math.floor(width * scale)), rows = Math.max(2, Math.floor(height * scale));
  const canvas = h("canvas", { width: columns, height: rows });
  const pen = canvas.getContext("2d");
  pen.fillStyle = "white";
  pen.fillRect(0, 0, columns, rows);
  pen.imageSmoothingQuality = "high";
  pen.drawImage(image, 0, 0, columns, rows);
  const all = pen.getImageData(0, 0, columns, rows).data;
  let grey = true;
  for (let k = 0; k < all.length && grey; k += 4) grey = all[k] === all[k + 1] && all[k] === all[k + 2];
  const channels = grey ? 1 : 3;
  const bytes = new Uint8Array(rows * columns * channels);
  for (let k = 0; k < rows * columns; k++) for (let c = 0; c < channels; c++) bytes[k * channels + c] = all[4 * k + c];
  return { rows, columns, channels, bytes, scaled: scale < 1 ? [height, width] : null };
}

// The same picture with 1 or 3 channels.
export function withChannels(picture, channels) {
  if (!channels || picture.channels === channels || ![1, 3].includes(channels)) return picture;
  const n = picture.rows * picture.columns, bytes = new Uint8Array(n * channels);
  for (let k = 0; k < n; k++) {
    if (channels === 3) bytes.fill(picture.bytes[k], 3 * k, 3 * k + 3);
    else bytes[k] = Math.round((picture.bytes[3 * k] + picture.bytes[3 * k + 1] + picture.bytes[3 * k + 2]) / 3);
  }
  return { ...picture, channels, bytes };
}

export const colourOf = (picture, k) => (picture.channels === 1 ? [picture.bytes[k], picture.bytes[k], picture.bytes[k]]
  : [picture.bytes[3 * k], picture.bytes[3 * k + 1], picture.bytes[3 * k + 2]]);

export const sent = (picture) => ({ rows: picture.rows, columns: picture.columns, channels: picture.channels, data: toBase64(picture.bytes) });

// A field that takes one picture from this machine.
export function filePicker(text, onpick) {
  const input = h("input", { type: "file", accept: "image/png,image/jpeg,image/gif,image/bmp,image/webp",
    onchange: () => { if (input.files[0]) onpick(input.files[0]); } });
  return Object.assign(h("label", { class: "file" }, h("span", {}, text), input), { input });
}
