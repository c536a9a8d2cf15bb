/** Files that the broker stores beside messages. */
import type { Part } from "../../schema/a2a.ts";

/** Whether it is a file of a delegation, which the broker gives only to whoever has a token. */
export const isStored = (url: string): boolean => /\/v1\/delegations\/dlg_\w+\/files\/fil_\w+$/.test(url);

/** Of a file beside the message, in bytes, as the broker says; undefined: not known. */
export const sizeOf = ({ metadata }: Part): number | undefined =>
  typeof metadata?.size === "number" ? metadata.size : undefined;
