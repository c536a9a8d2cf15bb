/** `errand rules create`. */
import { type Command, InvalidArgumentError, Option } from "commander";
import { argumentsText } from "../../client/rule-words.ts";
import { Rules } from "../../client/rules.ts";
import type { ArgumentConstraint } from "../../schema/rule.ts";
import { givenInstantSchema } from "../../schema/values.ts";
import { parseJson } from "../../util/parse-json.ts";
import { type Cli, connect, examples, type GlobalOptions } from "../context.ts";
import { whyNeverCounted } from "../counted.ts";
import { agentName, valid, wholeBetween } from "../input/arguments.ts";
import { duration } from "../input/duration.ts";
import { note, oneLine, print, printJson } from "../show/output.ts";
import { untilText } from "../show/rule-text.ts";

interface CreateOptions extends GlobalOptions {
  readonly deny?: boolean;
  readonly equals?: readonly ArgumentConstraint[];
  readonly path?: readonly ArgumentConstraint[];
  readonly items?: readonly ArgumentConstraint[];
  readonly min?: readonly ArgumentConstraint[];
  readonly max?: readonly ArgumentConstraint[];
  readonly fits?: readonly ArgumentConstraint[];
  readonly others?: "allow" | "refuse";
  readonly for?: number;
  readonly until?: string;
  readonly uses?: number;
  readonly note?: string;
  readonly idempotencyKey?: string;
}

const ABOUT = `
An action fits if its name does, and every argument that you name. An argument that is missing, or of another kind, never
fits. Arguments that you do not name make an approval not fit, and do not matter to a denial; --others changes that. A name
that begins with / is a JSON Pointer, such as /options/depth. Values are JSON; --equals takes what is not JSON as a text, so
--equals n=3 is the number, and --equals 'n="3"' the text.

The rule answers in your name what you may answer, until it is revoked, or your token is. A denial wins over approvals.`;

/** Adds a constraint for each `<name>=<value>`. */
const constraint =
  (test: (value: string) => ArgumentConstraint) =>
  (value: string, before: readonly ArgumentConstraint[] = []): readonly ArgumentConstraint[] => {
    const [, name, rest] = /^([^=]+)=(.*)$/s.exec(value) ?? [];
    if (name === undefined || rest === undefined)
      throw new InvalidArgumentError("It must be <name>=<value>; the agent and the action come before.");
    const place = name.startsWith("/") ? { pointer: name } : { name };
    return [...before, { ...place, ...test(rest) }];
  };

function numberIn(text: string): number {
  if (text.trim() !== "" && Number.isFinite(Number(text))) return Number(text);
  throw new InvalidArgumentError("The value must be a number.");
}

function itemsIn(text: string): string[] {
  const items = parseJson(text);
  if (Array.isArray(items) && items.every((item) => typeof item === "string")) return items;
  throw new InvalidArgumentError(`The value must be a JSON list of texts, such as '["git", "status"]'.`);
}

function schemaIn(text: string): unknown {
  const schema = parseJson(text);
  if (schema !== undefined) return schema;
  throw new InvalidArgumentError("The value must be a JSON Schema.");
}

export function addCreateRule(rules: Command, { host }: Cli): void {
  rules
    .command("create")
    .description("approve the actions that fit, or with --deny deny them; prints the rule's id")
    .argument("<agent>", "the agent that proposes the actions", agentName)
    .argument("<action>", "the name of the action; '*' at the end matches any rest")
    .option("--deny", "deny what fits")
    .option(
      "--equals <name=value...>",
      "this argument is this value; takes several",
      constraint((text) => ({ equals: parseJson(text) ?? text })),
    )
    .option(
      "--path <name=path...>",
      "it is this file or folder, or below it; takes several",
      constraint((path_prefix) => ({ path_prefix })),
    )
    .option(
      "--items <name=list...>",
      "it is a list that begins with these texts; takes several",
      constraint((text) => ({ items_prefix: itemsIn(text) })),
    )
    .option(
      "--min <name=number...>",
      "it is at least this; takes several",
      constraint((text) => ({ minimum: numberIn(text) })),
    )
    .option(
      "--max <name=number...>",
      "it is at most this; takes several",
      constraint((text) => ({ maximum: numberIn(text) })),
    )
    .option(
      "--fits <name=schema...>",
      "it fits this JSON Schema; takes several",
      constraint((text) => ({ schema: schemaIn(text) })),
    )
    .addOption(
      new Option("--others <what>", "other arguments (default: refuse, with --deny allow)").choices([
        "allow",
        "refuse",
      ] as const),
    )
    .option("--for <duration>", "for this long", duration)
    .option("--until <instant>", "until this instant", valid(givenInstantSchema))
    .option("--uses <n>", "for so many actions", wholeBetween(1, 1_000_000))
    .option("--note <text>", "for people")
    .option("--idempotency-key <key>", "repeating a key returns the same rule (default: a random key)")
    .addHelpText("after", ABOUT)
    .addHelpText(
      "after",
      examples(
        "errand rules create scout fs.write --path path=/srv/site --for 20m",
        `errand rules create coder execute --items 'argv=["git", "status"]' --others allow`,
        "errand rules create release deploy --equals to=staging region=eu --uses 3",
        "errand rules create release 'db.*' --deny --note 'never by itself'",
      ),
    )
    .action(async (agent: string, action: string, _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<CreateOptions>();
      const { equals = [], path = [], items = [], min = [], max = [], fits = [], idempotencyKey } = options;
      const connection = await connect(host, options);
      const made = await new Rules(connection).create(
        {
          ...{ agent, action, decision: options.deny ? "deny" : "approve" },
          arguments: [...equals, ...path, ...items, ...min, ...max, ...fits],
          ...endOf(options),
        },
        { idempotencyKey },
      );
      const never = await whyNeverCounted(connection, made);
      if (never !== undefined) await note(host, oneLine(never));
      if (options.json) return printJson(host, made);
      await print(host, made.id);
      await note(host, `arguments: ${oneLine(argumentsText(made))}; until ${untilText(made)}`);
    });
}

function endOf({ others, for: seconds, until, uses, note: text }: CreateOptions) {
  return {
    ...(others !== undefined && { only_these_arguments: others === "refuse" }),
    ...(seconds !== undefined && { for_seconds: seconds }),
    ...(until !== undefined && { expires_at: until }),
    ...(uses !== undefined && { max_uses: uses }),
    ...(text !== undefined && { note: text }),
  };
}
