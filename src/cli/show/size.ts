/** Sizes in bytes for people. */

const UNITS = ["bytes", "KiB", "MiB", "GiB"] as const;
const STEP = 1024;

/** `17 bytes`, `1.5 KiB`, `3 MiB`. */
export function sizeText(bytes: number): string {
  const at = Math.min(UNITS.length - 1, bytes < 1 ? 0 : Math.floor(Math.log(bytes) / Math.log(STEP)));
  const rounded = Math.round((bytes / STEP ** at) * 10) / 10;
  return bytes === 1 ? "1 byte" : `${rounded} ${UNITS[at]}`;
}
