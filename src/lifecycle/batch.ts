/**
 * Sends the commands that come in one turn of the event loop as one call of the script. A call has a fixed cost, about a
 * third of a move's, because Redis defines the script's functions again at each call. Limit: all answers of a batch come
 * together, so a batch is small; each of its commands still succeeds or fails on its own.
 */
import type { Redis } from "../redis/connect.ts";
import type { Script } from "../redis/script.ts";

/** Limits of a batch: commands, and characters of their arguments. A larger command is a batch of its own. */
const MAX_COMMANDS = 16;
const MAX_CHARS = 256 * 1024;

/** The script's results for a command. `second`: null if the second command did not run; an `Error` if it failed. */
export interface ScriptResults {
  readonly first: unknown;
  readonly second: unknown;
}

interface Waiting {
  readonly keys: readonly string[];
  readonly args: readonly string[];
  /** The arguments of a second command, on the first key, that runs in the same step. */
  readonly secondArgs: readonly string[] | undefined;
  readonly resolve: (results: ScriptResults) => void;
  readonly reject: (error: unknown) => void;
}

export class Batches {
  readonly #redis: Redis;
  /** The commands of this turn, by their script and shard: one call has the keys of one shard. */
  readonly #waiting = new Map<Script, Map<string, Waiting[]>>();
  /** The script of the waiting commands, by their first key. */
  readonly #scripts = new Map<string, Script>();

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /**
   * Runs one command; `base` is the prefix of its keys. Commands with the same first key run in the order of these calls.
   * `secondArgs` are those of a second command for the first key: it runs in the same call, if the first one succeeds.
   * Rejects with the first command's own error, or with the call's.
   */
  run(
    script: Script,
    base: string,
    keys: readonly [string, ...string[]],
    args: readonly string[],
    secondArgs?: readonly string[],
  ): Promise<ScriptResults> {
    return new Promise((resolve, reject) => {
      const [first] = keys;
      if ((this.#scripts.get(first) ?? script) !== script) this.#send();
      // An immediate runs after the sockets that are readable now were read, so their commands are in this batch.
      if (this.#scripts.size === 0) setImmediate(() => this.#send());
      this.#scripts.set(first, script);
      const byBase = this.#waiting.get(script) ?? new Map<string, Waiting[]>();
      this.#waiting.set(script, byBase);
      const commands = byBase.get(base) ?? [];
      byBase.set(base, commands);
      commands.push({ keys, args, secondArgs, resolve, reject });
    });
  }

  #send(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    this.#scripts.clear();
    for (const [script, byBase] of waiting) {
      for (const batch of [...byBase.values()].flatMap(inBatches)) void this.#call(script, batch);
    }
  }

  async #call(script: Script, batch: readonly Waiting[]): Promise<void> {
    const keys: string[] = [];
    const counts: number[] = [];
    const args: string[] = [];
    for (const command of batch) {
      keys.push(...command.keys);
      const second = command.secondArgs ?? [];
      counts.push(command.keys.length, command.args.length, second.length);
      args.push(...command.args, ...second);
    }
    try {
      const answers = await script.run(this.#redis, keys, [batch.length, ...counts, ...args]);
      if (!Array.isArray(answers)) throw new TypeError("the script returned no list of answers");
      for (const [at, { secondArgs, resolve, reject }] of batch.entries()) {
        const answer: unknown = answers[at];
        if (answer instanceof Error) reject(answer);
        else if (secondArgs === undefined) resolve({ first: answer, second: null });
        else if (Array.isArray(answer)) resolve({ first: answer[0], second: answer[1] });
        else reject(new TypeError("the script returned no pair of answers"));
      }
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }
}

const charsOf = (args: readonly string[]): number => args.reduce((sum, arg) => sum + arg.length, 0);

function inBatches(commands: readonly Waiting[]): Waiting[][] {
  const batches: Waiting[][] = [];
  let left = 0;
  let chars = 0;
  for (const command of commands) {
    const more = charsOf(command.args) + charsOf(command.secondArgs ?? []);
    if (left === 0 || chars + more > MAX_CHARS) {
      batches.push([]);
      left = MAX_COMMANDS;
      chars = 0;
    }
    batches.at(-1)?.push(command);
    left -= 1;
    chars += more;
  }
  return batches;
}
