import { stateSchema } from "../../schema/delegation.ts";
import { href, hrefWith, route } from "../app/route.ts";
import { agents } from "../data/agents.ts";
import { now } from "../data/clock.ts";
import { seesAll } from "../session/rights.ts";
import { session } from "../session/session.ts";
import { HOURS, nameOf, STATE_WORDS } from "../ui/words.ts";
import { EXTRA_FIELDS, type FieldName, filterOf } from "./filter.ts";
import { momentsAt } from "./moments.ts";

type Params = Partial<Record<FieldName, string>>;

interface Preset {
  readonly title: string;
  readonly params: Params;
}

function presets(at: number): readonly Preset[] {
  const { yesterday, hour } = momentsAt(at);
  const own = session.value?.principal;
  return [
    { title: "Failed since yesterday", params: { state: "failed", ended_since: yesterday } },
    { title: "Ended in the last hour", params: { ended_since: hour } },
    { title: "Asking", params: { state: "input_required" } },
    ...(agents.value?.some(({ counts }) => counts.awaiting > 0)
      ? [{ title: "Waiting for parts", params: { state: "awaiting_children" } }]
      : []),
    // Others see only their own.
    ...(seesAll.value && own !== undefined
      ? [{ title: "Mine, not ended", params: { delegator: own, state: "live" } }]
      : [{ title: "Not ended", params: { state: "live" } }]),
  ];
}

/** Searches that people need often. The agent that is chosen stays. */
export function Presets() {
  const { params } = route.value;
  const target = params.get("target") ?? undefined;
  const isChosen = (preset: Params) =>
    (["state", "delegator", "ended_since"] as const).every(
      (name) => (params.get(name) ?? "") === (preset[name] ?? ""),
    );
  return (
    <nav class="presets" aria-label="Frequent searches">
      {presets(now.value).map(({ title, params: preset }) => (
        <a
          key={title}
          href={href("find", { target, ...preset })}
          aria-current={isChosen(preset) ? "true" : undefined}
        >
          {title}
        </a>
      ))}
    </nav>
  );
}

const TITLES: Readonly<Record<(typeof EXTRA_FIELDS)[number], string>> = {
  delegator: "from",
  error_code: "error",
  since: "delegated since",
  until: "delegated before",
  ended_since: "ended since",
};

/** What else the search asks for, and where its fields are folded also what they ask for: each can be taken out. */
export function Chips() {
  const { params } = route.value;
  const used = filterOf(params);
  const chipOf = (name: FieldName, title: string, isField: boolean) => {
    const value = params.get(name);
    const isUsed = used[name] !== undefined;
    const text = `${title} ${shown(name, value ?? "")}${isUsed ? "" : " (ignored: nothing can have it)"}`;
    // A value that is not used is in no field of the form.
    return value ? [{ name, isField: isField && isUsed, text: text.trim() }] : [];
  };
  const chips = [
    ...chipOf("state", "", true),
    ...chipOf("target", "", true),
    ...EXTRA_FIELDS.flatMap((name) => chipOf(name, TITLES[name], false)),
  ];
  if (chips.length === 0) return null;
  return (
    <ul class="chips" aria-label="Filters">
      {chips.map(({ name, isField, text }) => (
        <li key={name} class={isField ? "of-field" : ""}>
          <a href={hrefWith({ [name]: undefined })} aria-label={`Without: ${text}`}>
            {text} <span aria-hidden="true">✕</span>
          </a>
        </li>
      ))}
    </ul>
  );
}

/** In characters: the address may have anything. */
const MAX_TEXT = 80;

function stateWords(value: string): string {
  const { data } = stateSchema.safeParse(value);
  return data === undefined ? value : STATE_WORDS[data];
}

function shown(name: FieldName, value: string): string {
  const at = Date.parse(value);
  if (name === "delegator") return nameOf(value).slice(0, MAX_TEXT);
  if (name === "state") return value.split(",").map(stateWords).join(" or ").slice(0, MAX_TEXT);
  if (name === "target" || name === "error_code" || Number.isNaN(at)) return value.slice(0, MAX_TEXT);
  return new Date(at).toLocaleString([], { ...HOURS, dateStyle: "medium", timeStyle: "short" });
}
