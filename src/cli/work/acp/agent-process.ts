/**
 * One process of an ACP agent, in its own group. The agent gets neither `fs` nor `terminal` from its client: it has tools
 * of its own, and version 2 of the protocol drops both.
 */
import { randomUUID } from "node:crypto";
import type { Writable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import type * as z from "zod";
import { WorkerUnavailableError } from "../../../client/unavailable.ts";
import { durationText } from "../../../client/words.ts";
import { onAbort } from "../../../util/timing.ts";
import { cutBytes, Tail } from "../capture.ts";
import type { ChildProcesses, CommandResult } from "../child.ts";
import { type CommandEnvironment, sharedEnv } from "../command-env.ts";
import { cannotStart } from "../command-reply.ts";
import { Connection, METHODS, type SessionListener } from "./connection.ts";
import { AgentEndedError, AgentRefusedError, ProtocolError } from "./errors.ts";
import { Frames } from "./frames.ts";
import { type Initialized, initializedSchema, type Settings } from "./schemas.ts";
import { REPORTS_FAILURES } from "./session-failure.ts";

export interface ProcessSetup {
  readonly command: readonly [string, ...string[]];
  readonly children: ChildProcesses;
  readonly environment: CommandEnvironment;
  /** Of this program. */
  readonly version: string;
  readonly startTimeoutMs: number;
}

const PROTOCOL_VERSION = 1;
const LOG_MAX = 4096;
const CLOSED_MS = 500;

export class AgentProcess {
  /** The sessions that it has open, with the settings that it offered for them. */
  readonly sessions = new Map<string, Settings>();
  /** Called for each piece of output. */
  onOutput: () => void = () => undefined;
  readonly #setup: ProcessSetup;
  readonly #stop = new AbortController();
  /** What it prints besides messages. */
  readonly #log = new Tail(LOG_MAX);
  readonly #ended: Promise<CommandResult>;
  #connection: Connection | undefined;
  #group: number | undefined;
  #info: Initialized = { protocolVersion: PROTOCOL_VERSION };
  #broken: ProtocolError | undefined;
  #hasEnded = false;

  /** Starts the program and waits until it speaks the protocol. */
  static async start(setup: ProcessSetup, signal: AbortSignal): Promise<AgentProcess> {
    const process = new AgentProcess(setup);
    try {
      await process.#initialize(signal);
      return process;
    } catch (error) {
      await process.end();
      signal.throwIfAborted();
      throw error;
    }
  }

  private constructor(setup: ProcessSetup) {
    this.#setup = setup;
    const frames = new Frames({
      onFrame: (line, frame) => this.#connection?.receive(line, frame),
      onOther: (line) => this.#log.add(line),
      onEndless: (bytes) => this.#break(`it printed ${bytes} bytes without a line end`),
    });
    const { command, children, environment } = setup;
    this.#ended = children
      .run({
        command,
        env: { ...sharedEnv(environment), ERRAND_AGENT_PROCESS: randomUUID() },
        input: (stdin) => this.#connect(stdin),
        signal: this.#stop.signal,
        onStart: (group) => {
          this.#group = group;
        },
        onLine: () => undefined,
        onStdout: (chunk) => {
          this.onOutput();
          frames.add(chunk);
        },
        onStderr: () => this.onOutput(),
        keepStdout: 0,
        limits: {},
      })
      .finally(() => {
        this.#hasEnded = true;
        this.#connection?.close();
      });
    this.#ended.catch(() => undefined);
  }

  get info(): Initialized {
    return this.#info;
  }

  get group(): number | undefined {
    return this.#group;
  }

  get isUsable(): boolean {
    return !this.#hasEnded && !this.#stop.signal.aborted;
  }

  /** Its last lines that are no messages. */
  get printed(): string {
    return this.#log.text();
  }

  /** SIGTERM to its group, then SIGKILL. Resolves when it has ended. */
  async end(): Promise<void> {
    this.#stop.abort(new Error("the agent was stopped"));
    await this.#ended.catch(() => undefined);
  }

  listen(sessionId: string, listener: SessionListener): () => void {
    return this.#connection?.listen(sessionId, listener) ?? (() => undefined);
  }

  cancel(sessionId: string): void {
    this.#connection?.cancel(sessionId);
  }

  /** Rejects with one of the errors of errors.ts. */
  async request<T>(schema: z.ZodType<T>, method: string, params: object): Promise<T> {
    try {
      if (this.#connection === undefined) throw new Error("not started");
      return await this.#connection.request(schema, method, params);
    } catch (error) {
      if (error instanceof AgentRefusedError || error instanceof ProtocolError) throw error;
      const result = await this.#ended.catch((cause: unknown) => {
        throw this.#broken ?? cause;
      });
      // Its stdout is messages, which explain nothing.
      throw this.#broken ?? new AgentEndedError({ ...result, stdoutEnd: "" });
    }
  }

  #connect(stdin: Writable): void {
    this.#connection = new Connection(stdin, (oddity) => this.#log.add(Buffer.from(`${oddity}\n`)));
    // An agent that reads nothing more is of no use. One that has ended by itself is given the time to be seen as such.
    void this.#connection.closed.then(async () => {
      if (this.#broken === undefined)
        await Promise.race([this.#ended.catch(() => undefined), delay(CLOSED_MS)]);
      this.#stop.abort(new Error("the connection to the agent is closed"));
    });
  }

  #break(why: string): void {
    this.#broken ??= new ProtocolError(why);
    this.#connection?.close(this.#broken);
  }

  async #initialize(signal: AbortSignal): Promise<void> {
    const { startTimeoutMs, version, command } = this.#setup;
    const [program] = command;
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      void this.end();
    }, startTimeoutMs);
    const off = onAbort(signal, () => void this.end());
    try {
      signal.throwIfAborted();
      this.#info = await this.request(initializedSchema, METHODS.initialize, {
        protocolVersion: PROTOCOL_VERSION,
        clientCapabilities: { elicitation: { form: {}, url: {} }, _meta: REPORTS_FAILURES },
        clientInfo: { name: "errand", version },
      });
    } catch (error) {
      throw isLate
        ? unavailable(
            program,
            `did not answer within ${durationText(startTimeoutMs)} (--acp-start-timeout)`,
            this.printed,
          )
        : this.#whyNot(program, error);
    } finally {
      clearTimeout(timer);
      off();
    }
    const { protocolVersion } = this.#info;
    if (protocolVersion !== PROTOCOL_VERSION)
      throw unavailable(
        program,
        `speaks version ${protocolVersion} of the protocol, not ${PROTOCOL_VERSION}`,
      );
  }

  #whyNot(program: string, error: unknown): Error {
    if (error instanceof AgentEndedError) {
      const { exitCode, signal, stderr } = error.result;
      const how = signal ? `was killed by ${signal}` : `ended with exit status ${exitCode}`;
      return unavailable(program, `${how} before it spoke the protocol`, stderr || this.printed);
    }
    if (error instanceof ProtocolError || error instanceof AgentRefusedError)
      return unavailable(program, "does not speak the protocol", error.message);
    return cannotStart(program, error);
  }
}

/** Nothing of the task has reached the agent, so its own words may be shown. */
const unavailable = (program: string, why: string, printed = ""): WorkerUnavailableError =>
  new WorkerUnavailableError(`${program} ${why}`, {
    detail: printed === "" ? undefined : cutBytes(`${program} ${why}: ${printed}`, 1024),
  });
