import { href } from "../app/route.ts";
import { isOperator } from "../session/rights.ts";
import { CopyLine } from "../ui/copy.tsx";

/** The lines to paste to work as the agent, and to reach it. */
export function Connect({ name, cardUrl }: { readonly name: string; readonly cardUrl: string }) {
  const broker = new URL(".", location.href).href.replace(/\/$/, "");
  return (
    <section class="connect" aria-labelledby="connect-title">
      <h2 id="connect-title">Connect</h2>
      <p class="dim">
        A worker needs a token of agent:{name}, a client that delegates one of caller:NAME.
        {isOperator.value && (
          <>
            {" "}
            <a href={href("agents", { part: "tokens" })}>Create a token</a>
          </>
        )}
      </p>
      <h3>A worker: any command becomes the agent</h3>
      <CopyLine text={`ERRAND_URL=${broker} ERRAND_TOKEN=… errand work --agent ${name} -- COMMAND`} />
      <h3>An A2A client: the agent's card</h3>
      <CopyLine text={cardUrl} />
      <h3>An MCP client: Claude Code, and others by the address and the token</h3>
      <CopyLine
        text={`claude mcp add --transport http errand ${broker}/mcp --header "Authorization: Bearer $ERRAND_TOKEN"`}
      />
      <CopyLine text={`${broker}/mcp`} />
    </section>
  );
}
