/** Random keys of 128 bits. `randomUUID` is not used, because pages without https lack it. */

export function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
