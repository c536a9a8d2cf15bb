/**
 * Replaces short ids on the command line by full ones before the command runs: a unique prefix, with or without `dlg_…_`,
 * or `@last`. A full id costs no request. Limit: prefixes are looked up among the newest 1 000 delegations.
 */
import type { Command } from "commander";
import type { Delegator } from "../../client/delegator.ts";
import type { ErrandApiError } from "../../client/errors.ts";
import type { ConnectionOptions } from "../../client/http.ts";
import type { Delegation } from "../../schema/delegation.ts";
import { delegationIdSchema } from "../../schema/values.ts";
import { connectToRead, type GlobalOptions } from "../context.ts";
import { CliError, cliError } from "../failure.ts";
import type { CliHost } from "../host.ts";
import { oneLine } from "../show/output.ts";
import { interruptible } from "../signals.ts";
import { delegationId, delegationIds } from "./arguments.ts";

const NEWEST = 1000;
const PAGE = 100;
const MAX_CANDIDATES = 5;
const SHORTEST = 8;

const HEAD = /^dlg_[0-9a-z]{1,3}_/;
const SHORT = /^(?:@last|dlg_[0-9a-z]{1,3}_[0-9a-z]{4,26}|[0-9a-z]{4,26})$/;

const isShort = (id: string): boolean => SHORT.test(id) && !delegationIdSchema.safeParse(id).success;

/** The part of an id after its fixed head. */
const tail = (id: string): string => id.replace(HEAD, "");

/**
 * Replaces the short ids among the arguments and options of the command that is about to run. Of several ids, one that
 * stands for no delegation stays and is added to `unknownIds`, so that the command can go on with the others.
 */
export async function expandIds(
  host: CliHost,
  command: Command,
  unknownIds: Map<string, ErrandApiError>,
): Promise<void> {
  const { processedArgs, registeredArguments, options } = command;
  const settings = command.optsWithGlobals<GlobalOptions & Record<string, unknown>>();
  let finder: Promise<Finder> | undefined;
  const full = async (id: unknown): Promise<unknown> => {
    if (Array.isArray(id) && id.length > 1) {
      return Promise.all(
        id.map((one) =>
          full(one).catch((error: unknown) => {
            if (!(error instanceof CliError)) throw error;
            unknownIds.set(String(one), error);
            return one;
          }),
        ),
      );
    }
    if (Array.isArray(id)) return Promise.all(id.map(full));
    if (typeof id !== "string" || !isShort(id)) return id;
    finder ??= connectToRead(host, settings).then((connection) => new Finder(connection));
    return (await finder).find(id);
  };
  for (const [at, { parseArg }] of registeredArguments.entries()) {
    const takesIds = parseArg === delegationId || parseArg === delegationIds;
    if (takesIds) processedArgs[at] = await full(processedArgs[at]);
  }
  for (const option of options) {
    if (option.parseArg !== delegationId) continue;
    const name = option.attributeName();
    if (settings[name] !== undefined) command.setOptionValue(name, await full(settings[name]));
  }
}

/** Only what a person chooses by, because whole delegations may have megabytes. */
type Candidate = Pick<Delegation, "id" | "state" | "target" | "task_preview">;

/** Reads the newest delegations once, for all ids of a command. */
class Finder {
  readonly #connection: ConnectionOptions;
  #newest: Promise<Candidate[]> | undefined;

  constructor(connection: ConnectionOptions) {
    this.#connection = connection;
  }

  async find(id: string): Promise<string> {
    return id === "@last" ? this.#last() : this.#byPrefix(id);
  }

  async #byPrefix(prefix: string): Promise<string> {
    this.#newest ??= this.#read();
    const newest = await this.#newest;
    const found = newest.filter((one) => (HEAD.test(prefix) ? one.id : tail(one.id)).startsWith(prefix));
    const [only, ...others] = found;
    if (only === undefined) throw unknown(prefix);
    if (others.length > 0) throw ambiguous(prefix, found);
    return only.id;
  }

  async #last(): Promise<string> {
    const { Admin } = await import("../../client/admin.ts");
    const { principal } = await new Admin(this.#connection).status();
    const delegator = await this.#delegator();
    const list = delegator.list({ delegator: principal }, { pageSize: 1 });
    for await (const { id } of list) return id;
    throw cliError({
      code: "delegation_not_found",
      status: 404,
      category: "UPSTREAM",
      detail: `@last: ${principal} has delegated nothing yet`,
      recovery: "Delegate something first, or pass an id; 'errand list' shows them.",
    });
  }

  /** Loaded only for a short id: `errand list`, for example, does without it. */
  async #delegator(): Promise<Delegator> {
    const { Delegator } = await import("../../client/delegator.ts");
    return new Delegator(this.#connection);
  }

  #read(): Promise<Candidate[]> {
    return interruptible(async (signal) => {
      const newest: Candidate[] = [];
      const delegator = await this.#delegator();
      const list = delegator.list({}, { pageSize: PAGE, signal });
      for await (const { id, state, target, task_preview } of list) {
        newest.push({ id, state, target, task_preview });
        if (newest.length === NEWEST) break;
      }
      return newest;
    });
  }
}

function unknown(prefix: string): CliError {
  return cliError({
    code: "delegation_not_found",
    status: 404,
    category: "UPSTREAM",
    detail: `none of the newest ${NEWEST} delegations that you may see has an id that begins with '${prefix}'`,
    recovery: "Pass the full id of an older one; 'errand list' shows ids.",
  });
}

function ambiguous(prefix: string, found: readonly Candidate[]): CliError {
  const shown = found.slice(0, MAX_CANDIDATES).map(({ id, state, target, task_preview }) => {
    return `${id} (${state}, ${target}: ${oneLine(task_preview, 30)})`;
  });
  const more = found.length > shown.length ? `, and ${found.length - shown.length} more` : "";
  return cliError({
    code: "ambiguous_id",
    category: "PROTOCOL",
    detail: `'${prefix}' is the beginning of ${found.length} ids`,
    recovery: `Add characters to choose one: ${shown.join(", ")}${more}.`,
    details: { ids: found.map(({ id }) => id) },
  });
}

/** For each id, its shortest unique form in this list: at least 8 characters, without the fixed head. */
export function shortIds(ids: readonly string[]): ReadonlyMap<string, string> {
  const tails = ids.map(tail).sort();
  return new Map(
    ids.map((id) => {
      const own = tail(id);
      const at = tails.indexOf(own);
      const shared = [tails[at - 1], tails[at + 1]].map((other) => sharedLength(own, other ?? ""));
      return [id, own.slice(0, Math.max(SHORTEST, 1 + Math.max(...shared)))];
    }),
  );
}

function sharedLength(one: string, other: string): number {
  if (one === other) return one.length;
  let at = 0;
  while (at < one.length && one[at] === other[at]) at += 1;
  return at;
}
