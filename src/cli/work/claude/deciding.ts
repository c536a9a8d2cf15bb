/** Decides about the tool calls of one run: by what people have answered, or by asking them. */
import type { Activity } from "../acp/activity.ts";
import type { Desk } from "../acp/desk.ts";
import type { ToolDecision, ToolRequest } from "./control.ts";
import type { HookAnswer, HookCall } from "./hook.ts";
import { digestOfCall, toPermission } from "./tool-permission.ts";
import { answersOf, toUserQuestions } from "./user-question.ts";

/** Tools for which Claude Code asks, unless its settings allow them. The hook puts off no others. */
const ASKED_FOR =
  /^(?:Bash|PowerShell|Edit|MultiEdit|Write|NotebookEdit|WebFetch|AskUserQuestion|ExitPlanMode|mcp__.*)$/;
const EDITS = /^(?:Edit|MultiEdit|Write|NotebookEdit)$/;
/** Modes in which it asks nobody. */
const ASKS_NOBODY = ["bypassPermissions", "dontAsk", "auto"];
/** These need a person in every mode. */
const FOR_PEOPLE = /^(?:AskUserQuestion|ExitPlanMode)$/;

/** A conversation keeps one call only, and would forget the others. */
const ONE_AT_A_TIME: ToolDecision = {
  behavior: "deny",
  message:
    "A person is asked about this call, too, and must answer first. Make exactly the same call again, after the result of the other one.",
};

export type Deferred = ToolRequest & { readonly tool_use_id: string };

export class Deciding {
  readonly #desk: Desk;
  readonly #activity: Pick<Activity, "note">;
  /** The calls of which a person has decided; Claude Code reports those that were denied. */
  readonly #answered = new Set<string>();
  /** Decided while no process ran, by the call's digest; each serves one call. */
  readonly #ready = new Map<string, ToolDecision>();
  readonly #decidedDeferred = new Set<string>();
  /** Allowed by the hook, by the call's id: Claude Code still asks for those that match an `ask` rule of its settings. */
  readonly #allowed = new Map<string, ToolDecision>();
  /** Since the process has started: a call was put off, and these were denied because of it. */
  #hasDeferred = false;
  #besides: ToolRequest[] = [];

  constructor(desk: Desk, activity: Pick<Activity, "note">) {
    this.#desk = desk;
    this.#activity = activity;
  }

  /** A process starts. */
  restart(): void {
    this.#hasDeferred = false;
    this.#besides = [];
  }

  /** A person has decided about the call with this id. */
  hasAnswered(id: string): boolean {
    return this.#answered.has(id);
  }

  /** A call that was decided, and is put off all the same, is put off by another hook. */
  mayDefer(id: string): boolean {
    return !this.#decidedDeferred.has(id);
  }

  /** What the host says about a call. Never resolves if the question ends the lease. */
  async decide(request: ToolRequest): Promise<ToolDecision> {
    const id = request.tool_use_id ?? "";
    const allowed = this.#allowed.get(id);
    this.#allowed.delete(id);
    return allowed ?? this.#decide(request);
  }

  /** `call`: the conversation keeps the call with this id. */
  async #decide(request: ToolRequest, call?: string): Promise<ToolDecision> {
    const questions = toUserQuestions(request);
    if (questions !== undefined) {
      const answers = await Promise.all(questions.map((one) => this.#desk.handle({ ...one, call })));
      return this.#answeredBy(request, answersOf(request, answers));
    }
    const asked = toPermission(request);
    if ("title" in asked) return this.#answeredBy(request, await this.#desk.handle({ ...asked, call }));
    this.#activity.note(`${asked.why}.`);
    return asked.response;
  }

  /** What the hook says before a call. */
  async beforeCall(call: HookCall): Promise<HookAnswer> {
    const answer = await this.#beforeCall(call);
    const { tool_use_id: id } = call;
    if (id !== undefined && typeof answer === "object" && answer.behavior === "allow")
      this.#allowed.set(id, { behavior: "allow", updatedInput: answer.updatedInput });
    return answer;
  }

  async #beforeCall({ tool_name, tool_input, ...call }: HookCall): Promise<HookAnswer> {
    const request: ToolRequest = { tool_name, input: tool_input, tool_use_id: call.tool_use_id };
    const digest = digestOfCall(request);
    const ready = this.#ready.get(digest);
    if (ready !== undefined) {
      this.#ready.delete(digest);
      return this.#answeredBy(request, ready);
    }
    // Only a call of the conversation itself can be put off.
    if (call.agent_id !== undefined || !isAskedFor(tool_name, call.permission_mode)) return undefined;
    const given = await this.#given(request);
    if (given !== undefined) return given;
    if (this.#hasDeferred) {
      this.#besides.push(request);
      return ONE_AT_A_TIME;
    }
    this.#hasDeferred = true;
    return "defer";
  }

  /** Decides about the call that was put off, and those that were denied because of it. */
  async decideDeferred(request: Deferred): Promise<void> {
    this.#decidedDeferred.add(request.tool_use_id);
    const decide = async (one: ToolRequest, call?: string) => {
      this.#ready.set(digestOfCall(one), await this.#decide(one, call));
    };
    await Promise.all([decide(request, request.tool_use_id), ...this.#besides.map((one) => decide(one))]);
  }

  async #given(request: ToolRequest): Promise<HookAnswer> {
    const questions = toUserQuestions(request);
    if (questions === undefined) {
      const asked = toPermission(request);
      if (!("title" in asked)) return asked.response;
      const given = await this.#desk.given(asked);
      return given && { ...this.#answeredBy(request, given.response), say: given.say };
    }
    const all = await Promise.all(questions.map((one) => this.#desk.given(one)));
    const given = all.flatMap((one) => (one ? [one.response] : []));
    return given.length < questions.length ? undefined : this.#answeredBy(request, answersOf(request, given));
  }

  #answeredBy({ tool_use_id: id }: ToolRequest, decision: ToolDecision): ToolDecision {
    if (id != null) this.#answered.add(id);
    return decision;
  }
}

function isAskedFor(tool: string, mode: string | undefined): boolean {
  if (FOR_PEOPLE.test(tool)) return true;
  if (mode !== undefined && ASKS_NOBODY.includes(mode)) return false;
  return ASKED_FOR.test(tool) && !(mode === "acceptEdits" && EDITS.test(tool));
}
