/**
 * The mode in which an agent asks before it uses a tool. The default of some agents asks nobody, and some forget the mode
 * when a conversation is continued. So it is set each time.
 */
import { WorkerUnavailableError } from "../../../client/unavailable.ts";
import type { ConfigOption, Settings } from "./schemas.ts";

export interface ModeChoice {
  /** --acp-mode */
  readonly mode: string | undefined;
  /** --acp-config */
  readonly config: readonly (readonly [id: string, value: string])[];
}

export type Setting =
  | { readonly kind: "mode"; readonly modeId: string }
  | { readonly kind: "config"; readonly configId: string; readonly value: string | boolean };

/** Values with which the known agents ask, the best first. */
const ASKS: readonly ((value: string) => boolean)[] = [
  (value) => value === "default",
  (value) => value === "workspace-write",
  (value) => value.endsWith("#agent"),
];
/** Values with which they do less than that. */
const ALLOWS_LESS = /^(?:plan|read-only|ask|manual)$|#plan$/;

/** Whether a person is asked, or the tool is refused, as far as the value's name says. */
const asksFirst = (value: string): boolean => ASKS.some((is) => is(value)) || ALLOWS_LESS.test(value);

/** The options of an agent that decide about approvals. */
const ABOUT_APPROVAL = /mode(?!l)|permission|approv|allow|sandbox|trust/i;

/** What of the choice lets tools run that nobody approved. */
export function unapproved({ mode, config }: ModeChoice): string | undefined {
  if (mode !== undefined && !asksFirst(mode)) return `--acp-mode ${mode}`;
  const found = config.find(
    ([id, value]) => ABOUT_APPROVAL.test(id) && !asksFirst(value) && value !== "false",
  );
  return found && `--acp-config ${found.join("=")}`;
}

/** What to set in a conversation. `isUnknown`: the agent names no mode of which the worker knows that it asks. */
export function settingsFor(
  { modes, configOptions }: Settings,
  { mode, config }: ModeChoice,
): { readonly settings: readonly Setting[]; readonly isUnknown: boolean } {
  const others = config.map(([id, value]) => configured(configOptions ?? [], id, value));
  const option = configOptions?.find(({ id, category }) => category === "mode" || id === "mode");
  const values = option ? valuesOf(option) : (modes?.availableModes.map(({ id }) => id) ?? []);
  const wanted = mode ?? ASKS.map((is) => values.find(is)).find((value) => value !== undefined);
  if (wanted === undefined) return { settings: others, isUnknown: true };
  if (!values.includes(wanted)) throw missing(`no mode '${wanted}'`, values);
  const own: Setting = option
    ? { kind: "config", configId: option.id, value: wanted }
    : { kind: "mode", modeId: wanted };
  return { settings: [own, ...others], isUnknown: false };
}

function configured(options: readonly ConfigOption[], id: string, value: string): Setting {
  const option = options.find((one) => one.id === id);
  if (option === undefined)
    throw missing(
      `no option '${id}'`,
      options.map((one) => one.id),
    );
  if (option.type === "boolean") return { kind: "config", configId: id, value: value === "true" };
  const values = valuesOf(option);
  if (values.includes(value)) return { kind: "config", configId: id, value };
  throw missing(`no value '${value}' of '${id}'`, values);
}

const valuesOf = ({ options }: ConfigOption): string[] =>
  (options ?? []).flatMap((one) => ("value" in one ? [one.value] : one.options.map(({ value }) => value)));

const missing = (what: string, known: readonly string[]): WorkerUnavailableError =>
  new WorkerUnavailableError(`the agent has ${what}; it has: ${known.slice(0, 20).join(", ") || "none"}`);
