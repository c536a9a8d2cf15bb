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

interface Ready {
  readonly digest: string;
  /** The conversation keeps the call with this id. Undefined: the model makes it again, with another id. */
  readonly call: string | undefined;
  readonly decision: Promise<ToolDecision>;
}

export type Deferred = ToolRequest & { readonly tool_use_id: string };

export class Deciding {
  readonly #desk: Desk;
  readonly #activity: Pick<Activity, "note">;
  /** The calls of which a person has decided; Claude Code reports those that were denied. */
  readonly #answered = new Set<string>();
  /** About calls that come again; each serves one. */
  #ready: readonly Ready[] = [];
  readonly #decidedDeferred = new Set<string>();
  /** Allowed by the hook, by the call: Claude Code still asks for those that match an `ask` rule of its settings. */
  readonly #allowed = new Map<string, ToolDecision>();
  /** Since the process has started: the call that was put off, and those that were denied because of it. */
  #deferred: ToolRequest | undefined;
  #besides: ToolRequest[] = [];

  constructor(desk: Desk, activity: Pick<Activity, "note">) {
    this.#desk = desk;
    this.#activity = activity;
  }

  /** A process starts. */
  restart(): void {
    this.#deferred = undefined;
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

  /**
   * The call with this id was not put off in spite of the hook: another hook denied it, or Claude Code puts off none of
   * several calls. So the process goes on, and what was denied besides is asked for now.
   */
  hasGoneOn(id: string | null | undefined): void {
    if (id == null || id !== this.#deferred?.tool_use_id) return;
    this.#deferred = undefined;
    for (const one of this.#besides.splice(0)) void this.#prepare(one);
  }

  /** The turn has ended, and put nothing off. */
  hasEndedTurn(): void {
    this.#deferred = undefined;
    this.#besides = [];
  }

  /** What the host says about a call. Never resolves if the question ends the lease. */
  async decide(request: ToolRequest): Promise<ToolDecision> {
    this.hasGoneOn(request.tool_use_id);
    const key = keyOf(request);
    const allowed = this.#allowed.get(key);
    this.#allowed.delete(key);
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
    if (call.tool_use_id !== undefined && typeof answer === "object" && answer.behavior === "allow")
      this.#allowed.set(keyOf(call), { behavior: "allow", updatedInput: answer.updatedInput });
    return answer;
  }

  async #beforeCall({ tool_name, tool_input, ...call }: HookCall): Promise<HookAnswer> {
    const request: ToolRequest = { tool_name, input: tool_input, tool_use_id: call.tool_use_id };
    const ready = this.#takeReady(request);
    if (ready !== undefined) return this.#answeredBy(request, await ready.decision);
    // Only a call of the conversation itself can be put off.
    if (call.agent_id !== undefined || !isAskedFor(tool_name, call.permission_mode)) return undefined;
    const given = await this.#given(request);
    if (given !== undefined) return given;
    if (this.#deferred !== undefined) {
      this.#besides.push(request);
      return ONE_AT_A_TIME;
    }
    this.#deferred = request;
    return "defer";
  }

  /** Decides about the call that was put off, and those that were denied because of it. */
  async decideDeferred(request: Deferred): Promise<void> {
    this.#decidedDeferred.add(request.tool_use_id);
    const besides = this.#besides.splice(0);
    await Promise.all([
      this.#prepare(request, request.tool_use_id),
      ...besides.map((one) => this.#prepare(one)),
    ]);
  }

  #prepare(request: ToolRequest, call?: string): Promise<ToolDecision> {
    const decision = this.#decide(request, call);
    decision.catch((error: unknown) => this.#desk.fail(error));
    this.#ready = [...this.#ready, { digest: digestOfCall(request), call, decision }];
    return decision;
  }

  /** The kept call has its own decision, also if another one is the same. If it was lost, the model makes it again. */
  #takeReady(request: ToolRequest): Ready | undefined {
    const digest = digestOfCall(request);
    const same = this.#ready.filter((one) => one.digest === digest);
    const own = same.find(({ call }) => call !== undefined && call === request.tool_use_id);
    const taken = own ?? same.find(({ call }) => call === undefined) ?? same[0];
    this.#ready = this.#ready.filter((one) => one !== taken);
    return taken;
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

const keyOf = ({ tool_name, tool_use_id }: Pick<ToolRequest, "tool_name" | "tool_use_id">): string =>
  JSON.stringify([tool_name, tool_use_id]);

function isAskedFor(tool: string, mode: string | undefined): boolean {
  if (FOR_PEOPLE.test(tool)) return true;
  if (mode !== undefined && ASKS_NOBODY.includes(mode)) return false;
  return ASKED_FOR.test(tool) && !(mode === "acceptEdits" && EDITS.test(tool));
}
