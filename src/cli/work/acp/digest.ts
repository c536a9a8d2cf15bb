/** The identity of what an agent asks. The caller decides what belongs to it. */
import { createHash } from "node:crypto";
import { sortedJson } from "../../../util/sorted-json.ts";

export const digestOf = (value: unknown): string =>
  createHash("sha256").update(sortedJson(value)).digest("hex");
