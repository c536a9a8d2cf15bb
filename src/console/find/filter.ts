/** The filter of a search, in the URL and as the API takes it. */
import * as z from "zod";
import {
  type DelegationFilter,
  delegationFilterSchema,
  LIVE_STATES,
  stateSchema,
} from "../../schema/delegation.ts";

/** Those that have no field in the face of everybody. */
export const EXTRA_FIELDS = ["delegator", "error_code", "since", "until", "ended_since"] as const;
export const FIELDS = ["q", "state", "target", ...EXTRA_FIELDS] as const;
export type FieldName = (typeof FIELDS)[number];

const fields = delegationFilterSchema.shape;

export const isFiltered = (params: URLSearchParams): boolean => FIELDS.some((name) => params.get(name));

export function filterOf(params: URLSearchParams): DelegationFilter {
  const text = (name: FieldName): string | undefined => {
    const value = params.get(name)?.trim();
    // A value that no delegation can have, for example half a name, is ignored.
    return name === "state" || fields[name].safeParse(value).success ? value : undefined;
  };
  return {
    q: text("q"),
    target: text("target"),
    // Callers are shown by their names.
    delegator: text("delegator") ?? principalOf(params.get("delegator")?.trim()),
    error_code: text("error_code"),
    state: statesOf(text("state")),
    since: instantOf(params.get("since")),
    until: instantOf(params.get("until")),
    ended_since: instantOf(params.get("ended_since")),
  };
}

function principalOf(name: string | undefined): string | undefined {
  const { data } = fields.delegator.safeParse(`caller:${name}`);
  return name ? data : undefined;
}

/** Several are separated by commas, and `live` stands for all states that are not final. */
function statesOf(text: string | undefined): DelegationFilter["state"] {
  if (text === "live") return LIVE_STATES;
  const { data } = z.array(stateSchema).safeParse(text?.split(","));
  return data;
}

/** A local time as the browser's field shows it; empty if there is none. */
export function localOf(text: string | null): string {
  const at = new Date(text ?? "");
  if (Number.isNaN(at.getTime())) return "";
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** Of a local time, as the browser's field writes it, or of an instant, as the URL has it. */
export function instantOf(text: string | null): string | undefined {
  const ms = Date.parse(text ?? "");
  return Number.isNaN(ms) ? undefined : new Date(ms).toISOString();
}
