/** Commands to paste, as the reader runs `errand`. The page cannot know how, so the reader says it once. */
import { effect, signal } from "@preact/signals";
import { isOperator } from "../session/rights.ts";
import { CopyLine } from "./copy.tsx";

const KEY = "errand-command";
const PLACES = {
  clone: "in its clone, on the broker's machine",
  installed: "installed, on the broker's machine",
  elsewhere: "on another machine",
} as const;
type Place = keyof typeof PLACES;
const NAMES = Object.keys(PLACES).filter((name): name is Place => Object.hasOwn(PLACES, name));

const isLocal = /^(?:localhost|127\.[\d.]+|\[::1\])$/.test(location.hostname);
const stored = localStorage.getItem(KEY);
const place = signal<Place>(NAMES.find((name) => name === stored) ?? (isLocal ? "clone" : "elsewhere"));
effect(() => localStorage.setItem(KEY, place.value));

/** The address of the broker that serves the page. */
export const brokerUrl = (): string => new URL(".", location.href).href.replace(/\/$/, "");

/** `./errand watch`. Beside the broker, the program has the operator's token; everybody else needs a token. */
function commandLine(command: string): string {
  const { value } = place;
  if (value === "elsewhere" || !isOperator.value)
    return `ERRAND_URL=${brokerUrl()} ERRAND_TOKEN=… errand ${command}`;
  return `${value === "clone" ? "./errand" : "errand"} ${command}`;
}

/** `command` is without the program: `watch`. */
export function CommandLine({ command }: { readonly command: string }) {
  return <CopyLine text={commandLine(command)} />;
}

/** Chooses how the commands are written. */
export function CommandPlace() {
  if (!isOperator.value) return null;
  return (
    <label class="command-place">
      <span>You run errand</span>
      <select
        value={place.value}
        onChange={({ currentTarget }) => {
          place.value = NAMES.find((name) => name === currentTarget.value) ?? "elsewhere";
        }}
      >
        {NAMES.map((name) => (
          <option key={name} value={name}>
            {PLACES[name]}
          </option>
        ))}
      </select>
    </label>
  );
}
