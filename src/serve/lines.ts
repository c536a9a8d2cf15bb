/** The lines that `errand serve` prints when the broker is ready: how to reach it, and what to try next. */
import { type NetworkInterfaceInfo, networkInterfaces } from "node:os";
import { join, resolve } from "node:path";
import type { Announced, Announcement } from "./announcement.ts";
import { type Called, ownCommand, quoted, shellWord } from "./own-command.ts";

interface Started {
  readonly dataDir: string;
  readonly url: string;
  /** The operator token is not the one in the data directory. */
  readonly hasOwnToken: boolean;
  readonly announced: Pick<Announced, "isFound" | "other">;
}

/** A variable for the CLI. Without a value, it is a secret that people set themselves. */
interface Variable {
  readonly name: string;
  /** As a shell takes it. */
  readonly value?: string;
}

/** The environment that the CLI needs. The CLI finds a data directory by itself only if its name is `.errand`. */
export function variablesFor({ dataDir, url, hasOwnToken, announced: { isFound } }: Started): Variable[] {
  const token = hasOwnToken ? [{ name: "ERRAND_TOKEN" }] : [];
  if (isFound) {
    const isDefault = dataDir === resolve(".errand");
    return [...(isDefault ? [] : [{ name: "ERRAND_DATA_DIR", value: shellWord(dataDir) }]), ...token];
  }
  // The CLI sends the operator token only to the gateway that it finds in the data directory.
  const read = { name: "ERRAND_TOKEN", value: `"$(cat ${quoted(join(dataDir, "operator-token"))})"` };
  return [{ name: "ERRAND_URL", value: url }, ...(hasOwnToken ? token : [read])];
}

const shellText = ({ name, value }: Variable): string => (value === undefined ? name : `${name}=${value}`);

export function howClientsConnect(started: Started): string {
  const { isFound, other } = started.announced;
  const variables = variablesFor(started).map(shellText).join(" and ");
  if (other !== null && !isFound)
    return `the CLI here uses ${other.url} until that gateway stops; to use this one now, set ${variables}`;
  if (variables === "") return `the CLI finds this broker and its token in ${resolve(".")} and below`;
  return `to use the CLI in another shell, set ${variables}`;
}

/** For a gateway that finds another one on its data directory and in its private Redis. */
export const sharesBroker = (other: Pick<Announcement, "url">, dataDir: string): string =>
  `this is one more gateway of the broker at ${other.url}: both have the agents and the work in ${dataDir}; for a separate broker, stop this one and set ERRAND_DATA_DIR (--data-dir) to another folder`;

/** Where people type the commands that are printed. */
interface Shell extends Called {
  /** Those by which the CLI finds the broker. */
  readonly variables: readonly Variable[];
}

/** Three commands to try. */
export function nextSteps(shell: Shell): string {
  const errand = commandIn(shell);
  return [
    "next, paste in other terminals here: an agent (any command), a task for it, the events",
    `  ${errand} work --agent scout -- wc -w`,
    `  ${errand} delegate scout "count these words" --wait`,
    `  ${errand} watch`,
  ].join("\n");
}

/** Replaces the sign-in link where none is printed. */
export const howToSignIn = (shell: Shell): string =>
  `for a link that signs in to the console: ${commandIn(shell)} sessions link`;

/** How a shell in the folder runs this program, for this broker. */
function commandIn(shell: Shell): string {
  const assignments = shell.variables.filter(({ value }) => value !== undefined).map(shellText);
  return [...assignments, ownCommand(shell)].join(" ");
}

type Interfaces = NodeJS.Dict<Pick<NetworkInterfaceInfo, "address" | "family" | "internal">[]>;

const WARNING =
  "warning: without TLS, tokens can be read on the network; put a proxy with TLS in front, unless you trust the network (docs/operations.md)";

/** A broker that other machines can reach: its addresses, and a warning that it has no TLS. */
export function reachableLines(
  {
    host,
    port,
    publicUrl,
  }: { readonly host: string; readonly port: number; readonly publicUrl?: string | undefined },
  interfaces: Interfaces = networkInterfaces(),
): string[] {
  if (/^(?:localhost|127\..*|::1)$/.test(host)) return [];
  const urls = isAny(host) ? addresses(host, interfaces).map((name) => `http://${name}:${port}`) : [];
  return [
    ...(urls.length > 0 ? [`other machines reach it at ${urls.join(", ")}`] : []),
    ...(publicUrl?.startsWith("https:") ? [] : [WARNING]),
  ];
}

const isAny = (host: string): boolean => host === "0.0.0.0" || host === "::";

/** Without link-local addresses of IPv6, which need a zone. */
function addresses(host: string, interfaces: Interfaces): string[] {
  return Object.values(interfaces).flatMap((all = []) =>
    all.flatMap(({ address, family, internal }) => {
      if (internal || address.startsWith("fe80:")) return [];
      if (family === "IPv4") return [address];
      return host === "::" ? [`[${address}]`] : [];
    }),
  );
}
