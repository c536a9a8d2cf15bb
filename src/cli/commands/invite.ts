/** `errand invite`: a token for a person or a program, with the lines to paste on their machine. */
import { type Command, InvalidArgumentError } from "commander";
import { Admin } from "../../client/admin.ts";
import { localError } from "../../client/errors.ts";
import { type Cli, connect, examples, type GlobalOptions } from "../context.ts";
import { agentName } from "../input/arguments.ts";
import { duration } from "../input/duration.ts";
import { note, print, printJson } from "../show/output.ts";

const ROLES = ["agent", "caller", "approver"] as const;
type Role = (typeof ROLES)[number];

type InviteOptions = GlobalOptions & { readonly expires?: number } & { readonly [R in Role]?: boolean };

/** What the role does first. */
const FIRST_COMMAND: Readonly<Record<Role, (name: string) => string>> = {
  agent: (name) => `npx errand work --agent ${name} -- COMMAND`,
  caller: () => "npx errand delegate AGENT TASK --wait",
  approver: () => "npx errand list --state input_required",
};

export function addInvite(program: Command, { host }: Cli): void {
  program
    .command("invite")
    .description("create a token for someone else, and print the lines that they paste (operator only)")
    .argument("<name>", "the name of the person, the program or the agent", agentName)
    .option("--agent", "for a worker of the agent with this name")
    .option("--caller", "to delegate and answer the questions of own delegations (the default)")
    .option("--approver", "to answer the questions of all delegations")
    .option("--expires <duration>", "how long the token is valid: 12h, 90d (default: forever)", duration)
    .addHelpText(
      "after",
      examples(
        "errand invite alice",
        "errand invite scout --agent",
        "errand invite bob --approver --expires 90d",
      ),
    )
    .action(async (name: string, _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<InviteOptions>();
      const role = roleOf(options);
      const connection = await connect(host, options);
      const { url } = connection;
      if (url === undefined) throw noUrl();
      const created = await new Admin(connection).createToken(`${role}:${name}`, {
        expiresInSeconds: options.expires,
      });
      const lines = [
        `export ERRAND_URL='${url}'`,
        `export ERRAND_TOKEN='${created.token}'`,
        FIRST_COMMAND[role](name),
      ];
      if (options.json) return printJson(host, { ...created, url, lines });
      for (const line of lines) await print(host, line);
      const until = created.expires_at === null ? "" : ` It expires at ${created.expires_at}.`;
      await note(
        host,
        `created ${created.id} for ${created.principal}; the token is shown only once.${until}`,
      );
      if (role !== "agent")
        await note(host, `in a browser, they sign in with the same token at ${new URL("/", url).href}`);
      if (isLocal(url))
        await note(host, `${url} works only on this machine; docs/operations.md says how to serve others.`);
    });
}

function roleOf(options: InviteOptions): Role {
  const [role = "caller", ...more] = ROLES.filter((one) => options[one]);
  if (more.length === 0) return role;
  throw new InvalidArgumentError("Choose one of --agent, --caller and --approver.");
}

const isLocal = (url: string): boolean =>
  URL.canParse(url) && /^(localhost|127\..*|\[::1\])$/.test(new URL(url).hostname);

const noUrl = () =>
  localError({
    code: "no_broker",
    category: "CONFIG",
    detail: "the broker has no URL",
    recovery: "Pass --url, or set ERRAND_URL.",
  });
