/**
 * The hook that Claude Code calls before it uses a tool. It asks the worker over a socket in the private folder of the run.
 * A call that nobody has decided is put off (`defer`): the process ends, the conversation keeps the call, and the hook is
 * called for it again when the conversation goes on. So it does when the worker is gone.
 */
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { execPath } from "node:process";
import * as z from "zod";
import { WorkerUnavailableError } from "../../../client/unavailable.ts";
import { cannotWrite } from "../command-reply.ts";
import type { ToolDecision } from "./control.ts";

const callSchema = z.object({
  tool_name: z.string(),
  tool_input: z.record(z.string(), z.unknown()),
  tool_use_id: z.string().optional(),
  permission_mode: z.string().optional(),
  /** Of a call by another agent than the one of the conversation. */
  agent_id: z.string().optional(),
});
export type HookCall = z.infer<typeof callSchema>;

/** `defer`: nobody has decided. `say` is for the model. Undefined: the hook has no opinion. */
export type HookAnswer = (ToolDecision & { readonly say?: string | undefined }) | "defer" | undefined;

/** Longer than any call of the worker to the broker takes; beyond it, Claude Code goes on as without the hook. */
const TIMEOUT_SECONDS = 600;

/** Systems take 104 or 108 bytes, with a zero at the end. */
const SOCKET_MAX = 100;

export class Hook {
  /** The path of the settings that name the hook. */
  readonly settings: string;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  static async open(folder: string, decide: (call: HookCall) => Promise<HookAnswer>): Promise<Hook> {
    const socket = join(folder, "hook.sock");
    const bytes = Buffer.byteLength(socket);
    if (bytes > SOCKET_MAX)
      throw new WorkerUnavailableError(
        `the path of its socket is too long (${bytes} bytes): set TMPDIR to a folder with a shorter path`,
      );
    const script = join(folder, "hook.mjs");
    const settings = join(folder, "claude.json");
    const hook = new Hook(settings, decide);
    try {
      hook.#server.listen(socket);
      await once(hook.#server, "listening");
      await hook.#writeFiles(socket, script);
    } catch (error) {
      hook.close();
      throw cannotWrite(error);
    }
    return hook;
  }

  async #writeFiles(socket: string, script: string): Promise<void> {
    const command = [execPath, script].map(quoted).join(" ");
    const entry = { matcher: "*", hooks: [{ type: "command", command, timeout: TIMEOUT_SECONDS }] };
    await writeFile(script, scriptFor(socket), { mode: 0o600 });
    await writeFile(this.settings, JSON.stringify({ hooks: { PreToolUse: [entry] } }), { mode: 0o600 });
  }

  private constructor(settings: string, decide: (call: HookCall) => Promise<HookAnswer>) {
    this.settings = settings;
    this.#server = createServer({ allowHalfOpen: true }, (socket) => {
      this.#sockets.add(socket);
      socket.on("error", () => undefined);
      socket.once("close", () => this.#sockets.delete(socket));
      void answered(socket, decide);
    });
    // A connection that cannot be accepted: the hook puts the call off.
    this.#server.on("error", () => undefined);
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}

async function answered(socket: Socket, decide: (call: HookCall) => Promise<HookAnswer>): Promise<void> {
  try {
    const call = callSchema.parse(JSON.parse(await sentBy(socket)));
    socket.end(JSON.stringify(toOutput(await decide(call))));
  } catch {
    // The hook puts the call off.
    socket.destroy();
  }
}

/** All that comes. Reading a stream in another way would close the socket for the answer, too. */
const sentBy = (socket: Socket): Promise<string> =>
  new Promise((resolve) => {
    const chunks: Buffer[] = [];
    socket.on("data", (chunk) => chunks.push(chunk));
    socket.once("end", () => resolve(Buffer.concat(chunks).toString("utf8")));
  });

function toOutput(answer: HookAnswer): object {
  if (answer === undefined) return {};
  if (answer === "defer")
    return { permissionDecision: "defer", permissionDecisionReason: "A person is asked." };
  if (answer.behavior === "deny")
    return { permissionDecision: "deny", permissionDecisionReason: answer.message };
  const { updatedInput, say } = answer;
  return { permissionDecision: "allow", updatedInput, ...(say !== undefined && { additionalContext: say }) };
}

const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;

/** A program of its own, without packages. */
const scriptFor = (socket: string): string => `import { connect } from "node:net";
let call = "";
for await (const chunk of process.stdin) call += chunk;
const answer = await new Promise((resolve) => {
  let text = "";
  const socket = connect(${JSON.stringify(socket)}, () => socket.end(call));
  socket.setEncoding("utf8");
  socket.on("data", (chunk) => { text += chunk; });
  socket.on("error", () => {});
  socket.on("close", () => resolve(text));
});
let output = { permissionDecision: "defer", permissionDecisionReason: "A person must be asked." };
try { output = JSON.parse(answer); } catch {}
process.stdout.write(JSON.stringify({ hookSpecificOutput: { hookEventName: "PreToolUse", ...output } }));
`;
