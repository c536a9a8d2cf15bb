/** Keys that nobody else makes. Limit: 128 bits of chance; not by `randomUUID`, which plain-http pages lack. */

export function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
