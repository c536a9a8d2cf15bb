/** What an agent does in a run: its tool calls, its plan, the files that it changed, and the progress that shows it. */
import type { Progress } from "../../../schema/delegation.ts";
import { oneLine } from "../../show/output.ts";
import { cutBytes } from "../capture.ts";
import { type OwnWords, ownWords } from "./own-words.ts";
import { merged, titleOf, toolNameOf } from "./permission.ts";
import type { Diff, ToolCall, Update } from "./schemas.ts";
import { UsageCount } from "./usage.ts";

const MESSAGE_MAX = 1024;
const STEP_MAX = 256;
const NOTES_MAX = 5;
const TOOLS_MAX = 64;
const CALLS_MAX = 10_000;

export class Activity {
  readonly usage = new UsageCount();
  readonly #answer = new AnswerText();
  readonly #calls = new Map<string, ToolCall>();
  readonly #tools = new Set<string>();
  /** By path: the text before the first change, and after the last one. */
  readonly #changes = new Map<string, Diff>();
  readonly #report: (progress: Progress) => void;
  readonly #agent: string | null | undefined;
  #ownWords: OwnWords | undefined;
  readonly #notes: string[] = [];
  #plan: Pick<Progress, "current_step" | "done" | "total"> = {};

  /** `agent`: its name. */
  constructor(report: (progress: Progress) => void, agent?: string | null) {
    this.#report = report;
    this.#agent = agent;
  }

  /** What the agent itself said at the end of the turn, which is no answer. */
  get ownWords(): OwnWords | undefined {
    return this.#ownWords;
  }

  get answer(): string {
    return this.#answer.text;
  }

  get changes(): readonly Diff[] {
    return [...this.#changes.values()];
  }

  /** A tool call of which the agent has not said that it ended. */
  get hasOpenCall(): boolean {
    return [...this.#calls.values()].some(({ status }) => status !== "completed" && status !== "failed");
  }

  add(update: Update): void {
    switch (update.sessionUpdate) {
      case "agent_message_chunk":
        this.#ownWords = ownWords(this.#agent, update);
        if (this.#ownWords === undefined) this.#answer.add(update);
        return;
      case "tool_call":
      case "tool_call_update":
        this.tool(update);
        return;
      case "plan":
        this.#planned(update.entries);
        return;
      case "usage_update":
        this.usage.update(update);
        return;
    }
  }

  /** All that is known of the call now. A permission may be the first that an agent says of it. */
  tool(given: ToolCall): ToolCall {
    const known = this.#calls.get(given.toolCallId);
    const call = merged(known, given);
    if (this.#calls.size < CALLS_MAX || known) this.#calls.set(given.toolCallId, call);
    if (known === undefined) this.#began(call);
    if (call.status === "completed" && known?.status !== "completed")
      this.#changed((call.content ?? []).filter((one) => one.type === "diff"));
    return call;
  }

  /** Stays in all later progress of the run, because only the latest of two reports in half a second is sent. */
  note(text: string): void {
    if (this.#notes.length < NOTES_MAX) this.#notes.push(text);
    this.show("");
  }

  show(message: string): void {
    const tools = this.#tools.size === 0 ? {} : { tools_used: [...this.#tools] };
    const text = cutBytes(oneLine([...this.#notes, message].join(" ")), MESSAGE_MAX);
    if (text !== "") this.#report({ message: text, ...tools, ...this.#plan });
  }

  /** A prompt is sent. */
  restart(): void {
    this.#ownWords = undefined;
    this.#answer.restart();
  }

  #began(call: ToolCall): void {
    if (this.#tools.size < TOOLS_MAX) this.#tools.add(toolNameOf(call));
    this.#answer.restart();
    this.show(titleOf(call));
  }

  #planned(
    entries: readonly { readonly content: string; readonly status?: string | null | undefined }[],
  ): void {
    const step = entries.find(({ status }) => status === "in_progress")?.content;
    this.#plan = {
      ...(step !== undefined && { current_step: oneLine(step, STEP_MAX) }),
      ...(entries.length > 0 && {
        done: entries.filter(({ status }) => status === "completed").length,
        total: entries.length,
      }),
    };
    if (entries.length > 0) this.show(step ?? "the plan changed");
  }

  #changed(diffs: readonly Diff[]): void {
    for (const diff of diffs) {
      const first = this.#changes.get(diff.path);
      this.#changes.set(diff.path, first ? { ...diff, oldText: first.oldText } : diff);
    }
  }
}

/**
 * The answer of a turn: what the agent said after its last tool call. Limit: an agent that says nothing after it has no
 * answer.
 */
type Chunk = Extract<Update, { sessionUpdate: "agent_message_chunk" }>;

/** The answer of a delegation may be an artifact of 3 MiB. */
const MAX = 4 * 1024 * 1024;

class AnswerText {
  /** By the id of the message. */
  #messages = new Map<string, string>();
  #length = 0;
  /** Agents that number their messages print warnings as messages without a number. */
  #hasIds = false;

  add({ content, messageId, _meta }: Chunk): void {
    if (content.type !== "text" || isInformational(_meta)) return;
    if (messageId != null) {
      if (!this.#hasIds) this.#messages.delete("");
      this.#hasIds = true;
    } else if (this.#hasIds) return;
    const text = content.text ?? "";
    this.#length += text.length;
    if (this.#length > MAX) return;
    const id = messageId ?? "";
    this.#messages.set(id, (this.#messages.get(id) ?? "") + text);
  }

  /** A tool call, or a new turn, begins. */
  restart(): void {
    this.#messages = new Map();
    this.#length = 0;
  }

  get text(): string {
    return [...this.#messages.values()].filter((one) => one.trim() !== "").join("\n\n");
  }
}

/** Claude's adapter marks its own warnings. */
function isInformational(meta: Chunk["_meta"]): boolean {
  const vendor = meta?.claudeCode;
  return typeof vendor === "object" && vendor !== null && "kind" in vendor && vendor.kind === "informational";
}
