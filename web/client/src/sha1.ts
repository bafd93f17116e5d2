/**
 * SHA-1, which UUIDs of version 5 are made of. The browser's own digest is asynchronous and missing on pages without TLS,
 * while an id has to be there before anything is sent.
 */
export function sha1(data: Uint8Array): Uint8Array {
  const blocks = Math.ceil((data.length + 9) / 64);
  const padded = new Uint8Array(blocks * 64);
  padded.set(data);
  padded[data.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, Math.floor(data.length / 0x20000000));
  view.setUint32(padded.length - 4, (data.length << 3) >>> 0);

  const state = new Uint32Array([0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0]);
  const words = new Uint32Array(80);
  for (let at = 0; at < padded.length; at += 64) {
    for (let i = 0; i < 16; i++) words[i] = view.getUint32(at + 4 * i);
    for (let i = 16; i < 80; i++) words[i] = rotate(word(words, i - 3) ^ word(words, i - 8) ^ word(words, i - 14) ^ word(words, i - 16), 1);
    mix(state, words);
  }
  const digest = new Uint8Array(20);
  const out = new DataView(digest.buffer);
  state.forEach((value, i) => out.setUint32(4 * i, value));
  return digest;
}

function mix(state: Uint32Array, words: Uint32Array): void {
  let [a, b, c, d, e] = [0, 1, 2, 3, 4].map((i) => word(state, i)) as [number, number, number, number, number];
  for (let i = 0; i < 80; i++) {
    const [f, k] = round(i, b, c, d);
    const next = (rotate(a, 5) + f + e + k + word(words, i)) >>> 0;
    [e, d, c, b, a] = [d, c, rotate(b, 30), a, next];
  }
  [a, b, c, d, e].forEach((value, i) => (state[i] = (word(state, i) + value) >>> 0));
}

function round(i: number, b: number, c: number, d: number): [number, number] {
  if (i < 20) return [(b & c) | (~b & d), 0x5a827999];
  if (i < 40) return [b ^ c ^ d, 0x6ed9eba1];
  if (i < 60) return [(b & c) | (b & d) | (c & d), 0x8f1bbcdc];
  return [b ^ c ^ d, 0xca62c1d6];
}

const word = (array: Uint32Array, i: number): number => array[i] ?? 0;
const rotate = (value: number, bits: number): number => ((value << bits) | (value >>> (32 - bits))) >>> 0;
