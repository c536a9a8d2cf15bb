/** Random keys of 128 bits. Not by `randomUUID`, which is missing in pages without https. */

export function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
