/** `errand token`: create, list, revoke. Limit: the secret is shown once, by create. */
import type { Command } from "commander";
import { Admin } from "../../client/admin.ts";
import { type Cli, connect, examples, type GlobalOptions, positive } from "../context.ts";
import { note, print, printJson, printTable } from "../show/output.ts";

export function addToken(program: Command, cli: Cli): void {
  const token = program
    .command("token")
    .description("make, list and revoke bearer tokens (the operator alone may)")
    .addHelpText("after", examples("errand token create caller:alice", "errand token list"));
  addCreate(token, cli);
  addListTokens(token, cli);
  addRevoke(token, cli);
}

function addCreate(token: Command, { host }: Cli): void {
  token
    .command("create")
    .description("make a token; it is printed now and never again")
    .argument("<principal>", "agent:<name>, caller:<name>, approver:<name> or viewer:<name>")
    .option("--expires <seconds>", "when it stops by itself (default: never)", positive)
    .addHelpText(
      "after",
      examples(
        "ERRAND_TOKEN=$(errand token create agent:scout)",
        "errand token create caller:ci --expires 86400",
      ),
    )
    .action(async (principal: string, _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<GlobalOptions & { expires?: number }>();
      const admin = new Admin(await connect(host, options));
      const made = await admin.createToken(principal, { expiresInSeconds: options.expires });
      if (options.json) return printJson(host, made);
      await print(host, made.token);
      if (host.isTty.stdout) await note(host, `${made.id} for ${made.principal}; it is shown only now.`);
    });
}

function addListTokens(token: Command, { host }: Cli): void {
  token
    .command("list")
    .description("all tokens, without their secrets")
    .addHelpText("after", examples("errand token list", "errand token list --json | jq -r .principal"))
    .action(async (_options: unknown, command: Command) => {
      const options = command.optsWithGlobals<GlobalOptions>();
      const tokens = await new Admin(await connect(host, options)).listTokens();
      if (options.json) {
        for (const one of tokens) await printJson(host, one);
        return;
      }
      await printTable(host, [
        ["ID", "PRINCIPAL", "CREATED", "EXPIRES"],
        ...tokens.map(({ id, principal, created_at, expires_at }) => [
          id,
          principal,
          created_at,
          expires_at ?? "never",
        ]),
      ]);
    });
}

function addRevoke(token: Command, { host }: Cli): void {
  token
    .command("revoke")
    .description("revoke a token; it stops within a second, open streams and polls included")
    .argument("<id>", "the token's id, as in the list")
    .addHelpText("after", examples("errand token revoke tok_…"))
    .action(async (id: string, _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<GlobalOptions>();
      await new Admin(await connect(host, options)).revokeToken(id);
      await (options.json ? printJson(host, { revoked: id }) : print(host, `revoked ${id}`));
    });
}
