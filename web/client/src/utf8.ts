/** The number of bytes of a text in UTF-8. */
export function utf8Length(text: string): number {
  let bytes = 0;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 0x80) bytes += 1;
    else if (unit < 0x800) bytes += 2;
    else if (isHighSurrogate(unit) && isLowSurrogate(text.charCodeAt(i + 1))) {
      bytes += 4;
      i++;
    } else bytes += 3;
  }
  return bytes;
}

/** What of a text comes after so many of its bytes in UTF-8; undefined if that is inside a rune or past the end. */
export function cutUtf8(text: string, bytes: number): string | undefined {
  let seen = 0;
  let i = 0;
  while (seen < bytes && i < text.length) {
    const units = isHighSurrogate(text.charCodeAt(i)) && isLowSurrogate(text.charCodeAt(i + 1)) ? 2 : 1;
    seen += utf8Length(text.slice(i, i + units));
    i += units;
  }
  return seen === bytes ? text.slice(i) : undefined;
}

const isHighSurrogate = (unit: number) => unit >= 0xd800 && unit < 0xdc00;
const isLowSurrogate = (unit: number) => unit >= 0xdc00 && unit < 0xe000;
