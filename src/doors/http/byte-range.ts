/** The Range header of a request for bytes (RFC 9110, 14.2). Limit: one range; several are answered with the whole. */
import type { ByteRange } from "../../engine/files/store.ts";

/** The range; null: the whole is asked for. `unsatisfiable`: it begins beyond the end. */
export function rangeOf(header: string | undefined, size: number): ByteRange | null | "unsatisfiable" {
  const [, from, to] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header?.trim() ?? "") ?? [];
  if (from === undefined || to === undefined || (from === "" && to === "")) return null;
  if (from === "")
    return Number(to) === 0 || size === 0
      ? "unsatisfiable"
      : { first: Math.max(0, size - Number(to)), last: size - 1 };
  const first = Number(from);
  const last = to === "" ? size - 1 : Math.min(Number(to), size - 1);
  if (to !== "" && Number(to) < first) return null;
  return first >= size ? "unsatisfiable" : { first, last };
}
