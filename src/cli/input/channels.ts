/**
 * The options of `errand notify create` and `change` that say by which channels. Limit: what qualifies a channel belongs to the one before
 * it, so a parser adds to the list as it reads. Secrets are read from the environment or a file, never from an argument,
 * because other users of the machine can read those.
 */
import { type Command, InvalidArgumentError } from "commander";
import * as z from "zod";
import { httpUrlSchema } from "../../schema/values.ts";
import { usageError } from "../failure.ts";
import type { CliHost } from "../host.ts";
import { notEmpty, valid } from "./arguments.ts";
import { duration } from "./duration.ts";
import { secretIn } from "./server-credentials.ts";

/** Where a secret is read from. */
type Source = { readonly variable: string } | { readonly file: string };
type Member = "url" | "secret" | "token";

interface Given {
  readonly kind: "webhook" | "slack" | "ntfy" | "email";
  readonly option: string;
  /** The URL or the address; absent where it is a secret. */
  readonly to?: string;
  readonly secrets: Partial<Record<Member, Source>>;
  after_seconds?: number;
}

const TAKES: Readonly<Record<Given["kind"], readonly Member[]>> = {
  webhook: ["secret", "token"],
  slack: [],
  ntfy: ["token"],
  email: [],
};

const httpUrl = valid(httpUrlSchema);
const address = valid(z.email("an address is needed, such as ann@example.com"));
const wholeSeconds = (text: string): number => Math.round(duration(text));

export interface Channels {
  /** The channels that the options name, with their secrets. */
  readonly read: (host: CliHost) => Promise<readonly object[]>;
  /** The option of a member of the channel in this place, such as `--ntfy` of `url`. */
  readonly optionOf: (place: number, member: string) => string | undefined;
}

/** Adds the options. */
export function addChannelOptions(command: Command): Channels {
  const channels: Given[] = [];
  const add = (kind: Given["kind"], option: string, parse: (text: string) => string) => (text: string) =>
    channels.push({ kind, option, to: parse(text), secrets: {} });
  const addSecret = (option: string, url: Source) =>
    channels.push({ kind: "slack", option, secrets: { url } });
  const last = (option: string): Given => {
    const channel = channels.at(-1);
    if (channel) return channel;
    throw new InvalidArgumentError(`Give ${option} after the channel that it belongs to.`);
  };
  const qualify = (member: Member, option: string, source: Source) => {
    const { kind, option: of, secrets } = last(option);
    if (!TAKES[kind].includes(member))
      throw new InvalidArgumentError(`${of}, the channel before it, takes no ${member}.`);
    secrets[member] = source;
    return source;
  };
  const variable = (text: string): Source => ({ variable: notEmpty(text) });
  const file = (text: string): Source => ({ file: notEmpty(text) });
  command
    .option(
      "--ntfy <url>",
      "a topic of ntfy, for example https://ntfy.sh/my-long-secret-topic",
      add("ntfy", "--ntfy", httpUrl),
    )
    .option(
      "--email <address>",
      "a mail address; the broker needs a mail server",
      add("email", "--email", address),
    )
    .option(
      "--slack <url>",
      "an incoming webhook of Slack, Mattermost, Rocket.Chat, or Discord's /slack",
      add("slack", "--slack", httpUrl),
    )
    .option(
      "--slack-env <variable>",
      "the same, from an environment variable, because the URL is a secret",
      (text) => addSecret("--slack-env", variable(text)),
    )
    .option("--slack-file <path>", "the same, from a file; - reads stdin", (text) =>
      addSecret("--slack-file", file(text)),
    )
    .option("--webhook <url>", "a POST with JSON, for programs", add("webhook", "--webhook", httpUrl))
    .option(
      "--secret-env <variable>",
      "whsec_… to sign the webhook before it with, from this environment variable",
      (text) => qualify("secret", "--secret-env", variable(text)),
    )
    .option("--secret-file <path>", "the same, from a file; - reads stdin", (text) =>
      qualify("secret", "--secret-file", file(text)),
    )
    .option(
      "--token-env <variable>",
      "the bearer token of the ntfy topic or webhook before it, from this environment variable",
      (text) => qualify("token", "--token-env", variable(text)),
    )
    .option("--token-file <path>", "the same, from a file; - reads stdin", (text) =>
      qualify("token", "--token-file", file(text)),
    )
    .option(
      "--after <duration>",
      "use the channel before it only if it still matters after this long",
      (text) => {
        const seconds = wholeSeconds(text);
        last("--after").after_seconds = seconds;
        return seconds;
      },
    );
  return {
    read: (host) => Promise.all(channels.map((channel) => channelOf(host, channel))),
    optionOf: (place, member) => channels[place] && optionOf(channels[place], member),
  };
}

function optionOf({ option, secrets }: Given, member: string): string {
  if (member === "after_seconds") return "--after";
  const source = member === "secret" || member === "token" ? secrets[member] : undefined;
  return source ? `--${member}-${"file" in source ? "file" : "env"}` : option;
}

async function channelOf(host: CliHost, { kind, to, secrets, after_seconds }: Given): Promise<object> {
  const read = await Promise.all(
    Object.entries(secrets).map(async ([member, source]) => [member, await secretOf(host, source, member)]),
  );
  return {
    kind,
    ...(to !== undefined && { [kind === "email" ? "to" : "url"]: to }),
    ...Object.fromEntries(read),
    ...(after_seconds !== undefined && { after_seconds }),
  };
}

async function secretOf(host: CliHost, source: Source, what: string): Promise<string> {
  const [text = "", place] =
    "file" in source
      ? [await secretIn(host, source.file, what), source.file === "-" ? "stdin" : source.file]
      : [host.childEnv[source.variable], source.variable];
  if (text.trim() !== "") return text.trim();
  throw usageError(`there is no ${what} in ${place}`, "variable" in source ? `Set ${place}.` : "");
}
