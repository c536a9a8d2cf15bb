/**
 * Compares an agent's settings before and after a change: the paths that differ, and their values for the audit log.
 * Limit: the log has no long values, no query of a URL, and no credentials.
 */
import { type AgentSpec, agentSpecSchema } from "../../schema/agent.ts";
import { LIMITS } from "../../schema/limits.ts";

export interface Difference {
  /** Paths of the settings that have a new value. */
  readonly changed: readonly string[];
  /** Paths of the settings that went back to their default. */
  readonly reset: readonly string[];
}

/** Settings as paths and JSON: `limits.max_working`. */
function pathsOf({ limits, backoff, ...rest }: AgentSpec): Map<string, string> {
  const of = (group: string, members: object) =>
    Object.entries(members).map(([name, value]) => [`${group}${name}`, JSON.stringify(value)] as const);
  return new Map([...of("", rest), ...of("limits.", limits), ...of("backoff.", backoff)]);
}

const DEFAULTS = pathsOf(agentSpecSchema.parse({}));

/** The path of the credentials. Nothing but the path is known here. */
const CREDENTIALS = "delivery.credentials";

/** The difference with the credentials' path among those that were changed, or reset to none. */
export function withCredentials({ changed, reset }: Difference, are: "changed" | "reset"): Difference {
  return are === "changed"
    ? { changed: [...changed, CREDENTIALS], reset }
    : { changed, reset: [...reset, CREDENTIALS] };
}

export function differenceOf(before: AgentSpec, after: AgentSpec): Difference {
  const old = pathsOf(before);
  const differing = [...pathsOf(after)].filter(([path, value]) => value !== old.get(path));
  const isDefault = ([path, value]: readonly [string, string]) => DEFAULTS.get(path) === value;
  return {
    changed: differing.filter((entry) => !isDefault(entry)).map(([path]) => path),
    reset: differing.filter(isDefault).map(([path]) => path),
  };
}

/** The longest value in the audit log, in characters of JSON. A longer value is left out; the log has its path. */
const VALUE_MAX = 200;

/** The difference, with as many values as fit into an entry of the audit log. */
export function auditDetails(
  difference: Difference,
  before: AgentSpec,
  after: AgentSpec,
): Record<string, unknown> {
  const [old, now] = [pathsOf(withoutQuery(before)), pathsOf(withoutQuery(after))];
  const values: { before: Record<string, unknown>; after: Record<string, unknown> } = {
    before: {},
    after: {},
  };
  let details: Record<string, unknown> = { ...difference };
  for (const path of [...difference.changed, ...difference.reset]) {
    if (path === CREDENTIALS) continue;
    const [was = "null", is = "null"] = [old.get(path), now.get(path)];
    if (was.length > VALUE_MAX || is.length > VALUE_MAX) continue;
    values.before[path] = JSON.parse(was);
    values.after[path] = JSON.parse(is);
    const more = { ...difference, ...structuredClone(values) };
    if (Buffer.byteLength(JSON.stringify(more)) > LIMITS.audit_entry_bytes.value) break;
    details = more;
  }
  return details;
}

function withoutQuery({ delivery, ...spec }: AgentSpec): AgentSpec {
  if (delivery.mode === "poll") return { ...spec, delivery };
  const { origin, pathname } = new URL(delivery.url);
  return { ...spec, delivery: { mode: "push", url: `${origin}${pathname}` } };
}
