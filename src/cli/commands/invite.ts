/** `errand invite`: a token for a person or a program, with the lines to paste on their machine. */
import { networkInterfaces } from "node:os";
import { type Command, InvalidArgumentError } from "commander";
import { Admin } from "../../client/admin.ts";
import { urlProblem } from "../../client/connection-errors.ts";
import { BROKER_HEADER } from "../../client/known-broker.ts";
import { withoutTrailingSlashes } from "../../schema/text.ts";
import type { TokenInfo } from "../../schema/token.ts";
import { type Cli, connect, examples, type GlobalOptions } from "../context.ts";
import { cliError } from "../failure.ts";
import { agentName } from "../input/arguments.ts";
import { duration } from "../input/duration.ts";
import { note, print, printJson } from "../show/output.ts";
import { ageText, localTime } from "../show/time.ts";

const ROLES = ["agent", "caller", "approver"] as const;
type Role = (typeof ROLES)[number];

type InviteOptions = GlobalOptions & {
  readonly expires?: number;
  readonly publicUrl?: string;
  readonly another?: boolean;
} & {
  readonly [R in Role]?: boolean;
};

/** The first command for each role. */
const FIRST_COMMAND: Readonly<Record<Role, (name: string) => string>> = {
  agent: (name) => `errand work --agent ${name} -- COMMAND`,
  caller: () => "errand delegate AGENT TASK --wait",
  approver: () => "errand inbox",
};

export function addInvite(program: Command, { host }: Cli): void {
  program
    .command("invite")
    .description("create a token for someone else, and print the lines that they paste (operator only)")
    .argument("<name>", "the name of the person, the program or the agent", agentName)
    .option("--agent", "for a worker of the agent with this name")
    .option("--caller", "to delegate, and to answer the questions of these delegations (the default)")
    .option("--approver", "to answer the questions of all delegations")
    .option("--expires <duration>", "how long the token is valid: 12h, 90d (default: forever)", duration)
    .option("--another", "create one more token, if there is one already")
    .option("--public-url <url>", "the broker's URL as they reach it, for the printed lines", httpUrl)
    .addHelpText(
      "after",
      examples(
        "errand invite alice",
        "errand invite alice --public-url http://192.168.1.5:4180",
        "errand invite scout --agent",
        "errand invite bob --approver --expires 90d",
      ),
    )
    .action(async (name: string, _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<InviteOptions>();
      const role = roleOf(options);
      const connection = await connect(host, options);
      const admin = new Admin(connection);
      const url = options.publicUrl ?? (await urlForOthers(admin, connection.url));
      if (!options.another) await requireNone(admin, `${role}:${name}`);
      const created = await admin.createToken(`${role}:${name}`, {
        expiresInSeconds: options.expires,
      });
      const lines = [
        `export ERRAND_URL=${quoted(url)}`,
        `export ERRAND_TOKEN=${quoted(created.token)}`,
        FIRST_COMMAND[role](name),
      ];
      if (options.json) return printJson(host, { ...created, url, lines });
      for (const line of lines) await print(host, line);
      const until = created.expires_at === null ? "" : ` It expires at ${localTime(created.expires_at)}.`;
      await note(
        host,
        `created ${created.id} for ${created.principal}; the token is shown only once.${until}`,
      );
      await note(
        host,
        "their machine needs the program 'errand': 'npm pack' in Errand's folder makes a file for 'npm install -g FILE'.",
      );
      if (role !== "agent")
        await note(host, `in a browser, they sign in with the same token at ${withoutTrailingSlashes(url)}/`);
      if (isLocal(url))
        await note(
          host,
          `${url} works only on this machine; --public-url names another. Start the broker with --host 0.0.0.0 to serve others (docs/operations.md).`,
        );
    });
}

/** A token is shown only once, so a second invitation is often meant to replace the first one. */
async function requireNone(admin: Admin, principal: string): Promise<void> {
  const isValid = ({ expires_at }: TokenInfo) => expires_at === null || Date.parse(expires_at) > Date.now();
  const found = (await admin.listTokens()).filter((one) => one.principal === principal && isValid(one));
  const [last] = found.slice(-1);
  if (last === undefined) return;
  const ids = found.map(({ id }) => id);
  const what = ids.length === 1 ? `a token already, ${last.id}` : `${ids.length} tokens already`;
  throw cliError({
    code: "token_exists",
    category: "PROTOCOL",
    detail: `${principal} has ${what}, created ${ageText(last.created_at)} ago`,
    recovery: `To replace a lost one, run 'errand token revoke ${last.id}' and invite again; --another creates one more.`,
    details: { token_ids: ids },
  });
}

function roleOf(options: InviteOptions): Role {
  const [role = "caller", ...more] = ROLES.filter((one) => options[one]);
  if (more.length === 0) return role;
  throw new InvalidArgumentError("Choose one of --agent, --caller and --approver.");
}

/**
 * The broker's own address, because it knows its proxy. If that works only on its machine, the caller's; if that does, too,
 * one at which the broker answers others.
 */
async function urlForOthers(admin: Admin, own: string | undefined): Promise<string> {
  const { url, broker_id } = await admin.status();
  const best = own !== undefined && isLocal(url) ? own : url;
  if (!isLocal(best)) return best;
  return (await reachableAddress(best, broker_id)) ?? best;
}

function httpUrl(text: string): string {
  const problem = urlProblem(text);
  if (problem === undefined) return text;
  throw new InvalidArgumentError(`${sentence(problem)} Pass one such as http://192.168.1.5:4180.`);
}

const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

const isLocal = (url: string): boolean =>
  URL.canParse(url) && /^(localhost|127\..*|\[::1\])$/.test(new URL(url).hostname);

/** The address at which other machines reach a broker of this machine. Limit: a firewall may still be in between. */
const PROBE_MS = 2_000;

/**
 * Asks this machine's own addresses, IPv4 first, for the broker with this id at the port of `url`; undefined if it answers
 * at none, because it listens on loopback only.
 */
async function reachableAddress(url: string, brokerId: string): Promise<string | undefined> {
  const { port, protocol } = new URL(url);
  if (protocol !== "http:") return undefined;
  const all = Object.values(networkInterfaces()).flatMap((found = []) => found);
  const outside = all.filter(({ internal, address }) => !internal && !address.startsWith("fe80:"));
  const names = [
    ...outside.filter(({ family }) => family === "IPv4").map(({ address }) => address),
    ...outside.filter(({ family }) => family === "IPv6").map(({ address }) => `[${address}]`),
  ];
  const urls = names.map((name) => `http://${name}${port === "" ? "" : `:${port}`}`);
  const answered = await Promise.all(urls.map(async (one) => (await isBroker(one, brokerId)) && one));
  return answered.find((one) => one !== false);
}

async function isBroker(url: string, id: string): Promise<boolean> {
  const signal = AbortSignal.timeout(PROBE_MS);
  const answer = await fetch(`${url}/healthz`, { signal, redirect: "manual" }).catch(() => null);
  await answer?.body?.cancel();
  return answer?.headers.get(BROKER_HEADER) === id;
}
