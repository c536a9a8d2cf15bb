/** One process of Claude Code from its first message to its end: its events, its questions, and the messages to it. */
import { randomUUID } from "node:crypto";
import * as z from "zod";
import type { Activity } from "../acp/activity.ts";
import { ProtocolError } from "../acp/errors.ts";
import type { CommandResult } from "../child.ts";
import type { Verdict } from "../presets/classify.ts";
import { claude, toolText } from "../presets/claude.ts";
import { PresetRun } from "../presets/run.ts";
import { ClaudeProcess, type ClaudeStart } from "./claude-process.ts";
import { answerTo, controlRequestSchema, refusalOf, toolRequestSchema, userMessage } from "./control.ts";
import type { Deciding, Deferred } from "./deciding.ts";

/** A message for the program. */
export interface Said {
  readonly text: string;
  /** The program has read it, so the conversation has it. */
  readonly onTaken?: (() => void) | undefined;
}

export interface TalkSetup
  extends Pick<ClaudeStart, "command" | "env" | "cwd" | "children" | "onStart" | "onOutput"> {
  readonly activity: Activity;
  readonly deciding: Deciding;
  /** The messages that the program must get now. */
  readonly takeMore: () => readonly Said[];
  /** The conversation has this id. */
  readonly onSession: (id: string) => Promise<void>;
  /** A turn has ended. */
  readonly onResult: (run: PresetRun) => void;
  /** A call cannot be decided: the run must end. */
  readonly onFailure: (error: unknown) => void;
}

/** How it ended. */
export interface Talked {
  readonly run: PresetRun;
  readonly result: CommandResult;
  readonly session: string | undefined;
  /** The call that was put off. */
  readonly deferred: Deferred | undefined;
  readonly verdict: (resumes: boolean) => Verdict;
}

const usedSchema = z.object({
  type: z.literal("tool_use"),
  id: z.string(),
  name: z.string(),
  input: z.record(z.string(), z.unknown()).catch({}),
});
const saidSchema = z.object({ type: z.literal("text"), text: z.string() });
const contentSchema = z
  .array(z.unknown())
  .transform((all) => all.flatMap((one) => z.union([usedSchema, saidSchema]).safeParse(one).data ?? []));
const assistantSchema = z.object({
  type: z.literal("assistant"),
  message: z.object({ content: contentSchema }),
});
const toolResultSchema = z.object({ type: z.literal("tool_result"), tool_use_id: z.string() });
const resultsSchema = z.object({
  type: z.literal("user"),
  message: z.object({
    content: z
      .array(z.unknown())
      .transform((all) => all.flatMap((one) => toolResultSchema.safeParse(one).data ?? [])),
  }),
});
/** Other events, such as `system`, also come from a process that waits for a message. */
const goingOnSchema = z.object({ type: z.enum(["assistant", "user", "result", "control_request"]) });
const replaySchema = z.object({ type: z.literal("user"), isReplay: z.literal(true), uuid: z.string() });
const resultSchema = z.looseObject({
  type: z.literal("result"),
  permission_denials: z.array(z.looseObject({ tool_use_id: z.string().optional() })).catch([]),
  deferred_tool_use: z
    .object({ id: z.string(), name: z.string(), input: z.record(z.string(), z.unknown()) })
    .optional()
    .catch(undefined),
});

export class Talk {
  readonly ended: Promise<Talked>;
  readonly #setup: TalkSetup;
  readonly #run = new PresetRun(claude, () => undefined);
  readonly #process: ClaudeProcess;
  /** The messages that it has not taken yet. */
  readonly #untaken = new Map<string, Said>();
  /** Those of them that another process must be told. */
  readonly #more = new Set<Said>();
  #deferred: Deferred | undefined;
  #late: ReturnType<typeof setTimeout> | undefined;

  constructor(setup: TalkSetup) {
    this.#setup = setup;
    this.#process = new ClaudeProcess({
      ...setup,
      onEvent: (event) => this.#see(event),
      onOther: (line) => this.#run.seePrinted(line),
      onStderr: (chunk) => this.#run.addStderr(chunk),
    });
    this.ended = this.#process.ended.then(
      (result) => ({
        run: this.#run,
        result,
        session: this.#run.session,
        deferred: this.#deferred,
        verdict: (resumes) => this.#run.verdict(result, resumes),
      }),
      (error: unknown) => {
        const { endless } = this.#process;
        throw endless === undefined
          ? error
          : new ProtocolError(`it printed ${endless} bytes without a line end`);
      },
    );
    this.ended.catch(() => undefined);
  }

  /** What it was told besides the prompt, and has not taken. */
  get untaken(): readonly Said[] {
    return [...this.#untaken.values()].filter((said) => this.#more.has(said));
  }

  say(said: Said): void {
    const uuid = randomUUID();
    this.#untaken.set(uuid, said);
    this.#process.send(userMessage(said.text, uuid));
  }

  /** It goes on by itself with the call that the conversation keeps. If it keeps none any more, it gets a message. */
  goOn(withinMs: number): void {
    this.#late = setTimeout(() => this.say({ text: "Continue." }), withinMs);
    void this.ended.catch(() => undefined).then(() => clearTimeout(this.#late));
    this.sendMore();
  }

  /** It works, so it needs no message. */
  goesOn(): void {
    clearTimeout(this.#late);
  }

  /** Tells it what is new. */
  sendMore(): void {
    if (!this.#process.isOpen) return;
    for (const said of this.#setup.takeMore()) {
      this.#more.add(said);
      this.say(said);
    }
  }

  end(): Promise<void> {
    return this.#process.end();
  }

  #see(event: object): void {
    if (goingOnSchema.safeParse(event).success) this.goesOn();
    const replayed = replaySchema.safeParse(event).data;
    if (replayed) this.#taken(replayed.uuid);
    for (const { tool_use_id: id } of resultsSchema.safeParse(event).data?.message.content ?? [])
      this.#setup.deciding.hasGoneOn(id);
    const asked = controlRequestSchema.safeParse(event).data;
    if (asked) this.#answer(asked).catch((error: unknown) => this.#setup.onFailure(error));
    const result = resultSchema.safeParse(event).data;
    if (result) this.#ends(result);
    else this.#run.see(event);
    this.#show(event);
    const { session, began } = this.#run;
    if (began && session !== undefined) void this.#setup.onSession(session);
  }

  async #answer({ request_id: id, request }: z.infer<typeof controlRequestSchema>): Promise<void> {
    const asked = request.subtype === "can_use_tool" ? toolRequestSchema.safeParse(request).data : undefined;
    if (asked === undefined) {
      this.#process.send(refusalOf(id, `this host does not serve ${request.subtype}`));
      return;
    }
    this.#process.send(answerTo(id, await this.#setup.deciding.decide(asked)));
    this.sendMore();
  }

  #taken(uuid: string): void {
    this.#untaken.get(uuid)?.onTaken?.();
    this.#untaken.delete(uuid);
  }

  #ends(result: z.infer<typeof resultSchema>): void {
    const { deciding } = this.#setup;
    const denials = result.permission_denials.filter(
      ({ tool_use_id: id }) => id === undefined || !deciding.hasAnswered(id),
    );
    this.#run.see({ ...result, permission_denials: denials });
    this.#setup.onResult(this.#run);
    const { deferred_tool_use: call } = result;
    // A message that it had read already may begin another turn after the call was put off.
    if (call && deciding.mayDefer(call.id))
      this.#deferred ??= { tool_name: call.name, input: call.input, tool_use_id: call.id };
    if (this.#deferred === undefined) {
      deciding.hasEndedTurn();
      this.sendMore();
    }
    if (this.#deferred !== undefined || this.#untaken.size === 0) this.#process.close();
  }

  #show(event: object): void {
    const { activity } = this.#setup;
    for (const part of assistantSchema.safeParse(event).data?.message.content ?? []) {
      if (part.type === "text") activity.show(part.text);
      else {
        const title = toolText({ name: part.name, input: part.input });
        activity.tool({ toolCallId: part.id, title, name: part.name, rawInput: part.input });
      }
    }
  }
}
