/** The checksum of Redis: CRC-64/REDIS (Jones), which ends an RDB file and every DUMP payload. */

/** The reflected polynomial, in two halves, because a bitwise operation has 32 bits. */
const HIGH = 0x95ac9329;
const LOW = 0xac4bc9b5;

const highs = new Int32Array(256);
const lows = new Int32Array(256);
for (let byte = 0; byte < 256; byte += 1) {
  let high = 0;
  let low = byte;
  for (let bit = 0; bit < 8; bit += 1) {
    const isOdd = (low & 1) === 1;
    low = (low >>> 1) | (high << 31);
    high >>>= 1;
    if (isOdd) {
      low ^= LOW;
      high ^= HIGH;
    }
  }
  highs[byte] = high;
  lows[byte] = low;
}

export class Crc64 {
  #high = 0;
  #low = 0;

  update(bytes: Uint8Array): this {
    let high = this.#high;
    let low = this.#low;
    for (const byte of bytes) {
      const at = (low ^ byte) & 255;
      low = ((low >>> 8) | (high << 24)) ^ (lows[at] ?? 0);
      high = (high >>> 8) ^ (highs[at] ?? 0);
    }
    this.#high = high;
    this.#low = low;
    return this;
  }

  /** Eight bytes, the lowest first, as Redis stores them. */
  digest(): Buffer {
    const bytes = Buffer.alloc(8);
    bytes.writeInt32LE(this.#low, 0);
    bytes.writeInt32LE(this.#high, 4);
    return bytes;
  }
}
