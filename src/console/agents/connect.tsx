import { CopyLine } from "../ui/copy.tsx";

/** The lines to paste to work as the agent, and to reach it. */
export function Connect({ name, cardUrl }: { readonly name: string; readonly cardUrl: string }) {
  const broker = new URL(".", location.href).href.replace(/\/$/, "");
  return (
    <section class="connect" aria-labelledby="connect-title">
      <h2 id="connect-title">Connect</h2>
      <h3>A worker: any command becomes the agent</h3>
      <CopyLine text={`ERRAND_URL=${broker} ERRAND_TOKEN=… errand work --agent ${name} -- COMMAND`} />
      <h3>An A2A client: the agent's card</h3>
      <CopyLine text={cardUrl} />
      <h3>An MCP client: Streamable HTTP, with a token as bearer</h3>
      <CopyLine text={`${broker}/mcp`} />
    </section>
  );
}
